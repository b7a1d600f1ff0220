"""Only a backend whose engine has the path takes the request."""

from __future__ import annotations

from dataclasses import replace

from gateway.errors import DialectNotSupported
from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.engine import ENGINE
from gateway.types import BackendName, BackendView, EngineKind

VLLM = BackendView(BackendName("a"), "http://a", EngineKind.VLLM)


def test_what_has_the_path_stays() -> None:
    assert ENGINE.keeps(VLLM, RouteAsk())
    ask = RouteAsk(engines=frozenset({EngineKind.SGLANG}))
    assert not ENGINE.keeps(VLLM, ask)
    assert ENGINE.keeps(replace(VLLM, engine=EngineKind.SGLANG), ask)


def test_where_none_has_it_the_api_is_not_offered() -> None:
    assert isinstance(ENGINE.refuse(RouteAsk(), Profile(), ()), DialectNotSupported)
