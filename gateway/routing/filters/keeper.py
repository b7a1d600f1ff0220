"""The backend that keeps the response which a request goes on from. Soft: where it is gone, another one says 404."""

from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView


def _keeps(view: BackendView, ask: RouteAsk) -> bool:
    return ask.keeper is None or view.name == ask.keeper


KEEPER = Filter("keeper", _keeps, None)
