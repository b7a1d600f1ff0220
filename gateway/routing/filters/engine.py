"""Backends whose engine has the path at all: some APIs are only vLLM's or only SGLang's."""

from __future__ import annotations

from gateway.errors import DialectNotSupported, GatewayError
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter, Views


def _narrow(views: Views, ask: RouteAsk) -> Views:
    engines = ask.engines
    return views if engines is None else [view for view in views if view.engine in engines]


def _refuse(_ask: RouteAsk, _profile: Profile, _views: Views) -> GatewayError:
    return DialectNotSupported()


ENGINE = Filter("engine", _narrow, _refuse)
