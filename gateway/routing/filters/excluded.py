"""Backends not tried yet for this request."""

from __future__ import annotations

from gateway.errors import GatewayError, NoBackend
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView


def _keeps(view: BackendView, ask: RouteAsk) -> bool:
    return view.name not in ask.excluded


def _refuse(_ask: RouteAsk, profile: Profile) -> GatewayError:
    return NoBackend(retry_after_s=profile.retry_after_s)


EXCLUDED = Filter("untried", _keeps, _refuse)
