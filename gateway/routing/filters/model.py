"""Backends that serve the model asked for. One whose models are unknown may serve any, and says so itself if not."""

from __future__ import annotations

from gateway.errors import GatewayError, ModelNotFound
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView


def _keeps(view: BackendView, ask: RouteAsk) -> bool:
    return ask.model is None or not view.models or ask.model in view.models


def _refuse(_ask: RouteAsk, _profile: Profile) -> GatewayError:
    return ModelNotFound(part="model")


MODEL = Filter("model", _keeps, _refuse)
