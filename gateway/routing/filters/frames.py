"""Backends that take a video as sampled frames, when the request has one in that form: vLLM."""

from __future__ import annotations

from gateway.errors import GatewayError, MediumUnsupported
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter, Views
from gateway.types import EngineKind


def _narrow(views: Views, ask: RouteAsk) -> Views:
    return [view for view in views if view.engine is EngineKind.VLLM] if ask.needs_frames else views


def _refuse(_ask: RouteAsk, _profile: Profile, _views: Views) -> GatewayError:
    return MediumUnsupported("No backend of this model takes sampled frames.")


FRAMES = Filter("frames", _narrow, _refuse)
