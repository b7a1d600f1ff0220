"""Only the backend that keeps a response goes on from it."""

from __future__ import annotations

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters.keeper import KEEPER
from gateway.types import BackendName, BackendView, EngineKind

A = BackendView(BackendName("a"), "http://a", EngineKind.VLLM)


def test_the_keeper_is_chosen_and_another_takes_its_place_where_it_is_gone() -> None:
    assert KEEPER.keeps(A, RouteAsk())
    assert KEEPER.keeps(A, RouteAsk(keeper=A.name))
    assert not KEEPER.keeps(A, RouteAsk(keeper=BackendName("b")))
    assert KEEPER.refuse(RouteAsk(), Profile(), ()) is None
