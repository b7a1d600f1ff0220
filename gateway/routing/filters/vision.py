"""Backends whose model takes images, when the request has any."""

from __future__ import annotations

from gateway.errors import GatewayError, InvalidRequest
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, ask: RouteAsk) -> Views:
    return [view for view in views if view.vision] if ask.needs_vision else views


def _refuse(_ask: RouteAsk, _profile: Profile, _views: Views) -> GatewayError:
    return InvalidRequest("No backend of this model takes images.", rule="backend.vision")


VISION = Filter("vision", _narrow, _refuse)
