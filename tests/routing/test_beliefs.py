"""Which of belief and knowledge counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gateway.routing.beliefs import Beliefs
from gateway.routing.holding import Holding, RouteKey
from gateway.types import BackendName

A, B = BackendName("a"), BackendName("b")
KEY = RouteKey((b"1", b"2"), (100, 50))


class Told:
    """An exact index that answers for one backend."""

    def __init__(self) -> None:
        self.forgotten: list[BackendName] = []

    def prefix_tokens(self, key: RouteKey) -> Mapping[BackendName, int]:
        return {B: 320}

    def forget(self, backend: BackendName) -> None:
        self.forgotten.append(backend)


def test_what_a_backend_was_given_it_holds_until_it_restarts() -> None:
    beliefs = Beliefs(10)
    assert beliefs.holdings(KEY) == {}
    beliefs.learn(A, RouteKey((b"2",)))
    assert beliefs.holdings(KEY) == {A: Holding(1, 50)}
    beliefs.forget(A)
    assert beliefs.holdings(KEY) == {}


def test_knowledge_overrules_belief_where_it_is_fresh() -> None:
    exact = Told()
    beliefs = Beliefs(10, exact)
    beliefs.learn(A, KEY)
    beliefs.learn(B, KEY)
    assert beliefs.holdings(KEY) == {A: Holding(2, 150), B: Holding(2, 150, 320, exact=True)}
    beliefs.forget(B)
    assert (beliefs.holdings(KEY)[B], exact.forgotten) == (Holding(0, 0, 320, exact=True), [B])


def test_an_exact_prefix_spares_the_images_inside_it() -> None:
    beliefs = Beliefs(10, Told())
    assert beliefs.holdings(replace(KEY, ends=(100, 400)))[B] == Holding(0, 100, 320, exact=True)
