"""The backend that keeps the response which a request goes on from. Soft: where it is gone, another one says 404."""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, ask: RouteAsk) -> Views:
    keeper = ask.keeper
    return views if keeper is None else [view for view in views if view.name == keeper]


KEEPER = Filter("keeper", _narrow)
