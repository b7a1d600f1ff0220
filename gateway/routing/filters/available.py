"""Backends that are up, not draining and not resting. Soft: when all are marked down they are tried all the same.

Marks lag behind the truth; failing open turns a wrong mark into an answer and a right one into a quick, true error.
"""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, _ask: RouteAsk) -> Views:
    return [view for view in views if view.healthy and not view.draining and not view.resting]


AVAILABLE = Filter("available", _narrow)
