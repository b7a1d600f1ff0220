"""Backends that are up and not draining. Soft: when all are marked down they are tried all the same.

Marks lag behind the truth; failing open turns a wrong mark into an answer and a right one into a quick, true error.
"""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView


def _keeps(view: BackendView, _ask: RouteAsk) -> bool:
    return view.healthy and not view.draining


AVAILABLE = Filter("available", _keeps)
