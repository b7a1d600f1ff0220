"""Backends whose model takes images, when the request has any."""

from __future__ import annotations

from gateway.errors import GatewayError, InvalidRequest
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView


def _keeps(view: BackendView, ask: RouteAsk) -> bool:
    if not ask.needs_vision:
        return True
    return view.vision and (view.max_images is None or len(ask.images) - ask.videos <= view.max_images)


def _refuse(_ask: RouteAsk, _profile: Profile) -> GatewayError:
    return InvalidRequest("No backend of this model takes the images of this request.", rule="backend.max_images")


VISION = Filter("vision", _keeps, _refuse)
