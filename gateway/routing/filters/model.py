"""Backends that serve the model asked for. One whose models are unknown may serve any, and says so itself if not."""

from __future__ import annotations

from gateway.errors import GatewayError, ModelNotFound
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, ask: RouteAsk) -> Views:
    model = ask.model
    return views if model is None else [view for view in views if not view.models or model in view.models]


def _refuse(_ask: RouteAsk, _profile: Profile, _views: Views) -> GatewayError:
    return ModelNotFound(part="model")


MODEL = Filter("model", _narrow, _refuse)
