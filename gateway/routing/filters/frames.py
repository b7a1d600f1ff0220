"""Backends that take a video as sampled frames, when the request has one in that form: vLLM."""

from __future__ import annotations

from gateway.errors import GatewayError, MediumUnsupported
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView, EngineKind


def _keeps(view: BackendView, ask: RouteAsk) -> bool:
    return not ask.needs_frames or view.engine is EngineKind.VLLM


def _refuse(_ask: RouteAsk, _profile: Profile) -> GatewayError:
    return MediumUnsupported("No backend of this model takes sampled frames.")


FRAMES = Filter("frames", _keeps, _refuse)
