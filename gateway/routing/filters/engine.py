"""Backends whose engine has the path at all: some APIs are only vLLM's or only SGLang's."""

from __future__ import annotations

from gateway.errors import DialectNotSupported, GatewayError
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.contract import Filter
from gateway.types import BackendView


def _keeps(view: BackendView, ask: RouteAsk) -> bool:
    return ask.engines is None or view.engine in ask.engines


def _refuse(_ask: RouteAsk, _profile: Profile) -> GatewayError:
    return DialectNotSupported()


ENGINE = Filter("engine", _keeps, _refuse)
