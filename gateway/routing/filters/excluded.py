"""Backends not tried yet for this request."""

from __future__ import annotations

from gateway.errors import GatewayError, NoBackend
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, ask: RouteAsk) -> Views:
    excluded = ask.excluded
    return [view for view in views if view.name not in excluded] if excluded else views


def _refuse(_ask: RouteAsk, profile: Profile, _views: Views) -> GatewayError:
    return NoBackend(retry_after_s=profile.retry_after_s)


EXCLUDED = Filter("untried", _narrow, _refuse)
