"""Backends that take so many images in one prompt (vLLM: ``--limit-mm-per-prompt``): above it they answer 400."""

from __future__ import annotations

from gateway.errors import GatewayError, InvalidRequest
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, ask: RouteAsk) -> Views:
    images = len(ask.key.images) - ask.videos
    if not ask.needs_vision or images < 1:
        return views
    return [view for view in views if view.max_images is None or images <= view.max_images]


def _refuse(ask: RouteAsk, _profile: Profile, views: Views) -> GatewayError:
    most = max((view.max_images or 0 for view in views), default=0)
    images = len(ask.key.images) - ask.videos
    return InvalidRequest(
        f"This request has {images} images; no backend of this model takes more than {most}.",
        rule="backend.max_images",
    )


MEDIA_LIMIT = Filter("media_limit", _narrow, _refuse)
