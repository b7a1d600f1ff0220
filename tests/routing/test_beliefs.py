"""Which of belief and knowledge counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

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


def asked(number: int, image: bytes) -> RouteKey:
    return RouteKey((image,), (100,), (25,), (number,), (50,))


def test_own_requests_tell_how_often_content_comes_again_and_those_of_others_do_not() -> None:
    beliefs = Beliefs(100)
    for number in range(20):
        beliefs.learn(A, asked(number, b"%d" % number))
    unique = beliefs.holdings(KEY).reuse
    assert unique < 0.05
    beliefs.hear(B, asked(30, b"1"))
    assert beliefs.holdings(asked(31, b"1"))[B].images == 1
    assert beliefs.holdings(KEY).reuse == unique
    beliefs.learn(A, asked(32, b"1"))
    assert beliefs.holdings(KEY).reuse > unique


@pytest.mark.parametrize(
    ("believed", "cached", "is_evidence"),
    [
        (Holding(), 2_000, True),
        (Holding(), 100, False),
        (Holding(prefix_tokens=1_900), 2_000, False),
        (Holding(prefix_tokens=100, exact=True), 2_000, False),
    ],
)
def test_more_than_we_can_explain_was_sent_by_others(believed: Holding, cached: int, is_evidence: bool) -> None:
    beliefs = Beliefs(100)
    for number in range(20):
        beliefs.learn(A, asked(number, b"%d" % number))
    before = beliefs.holdings(KEY).reuse
    beliefs.correct(A, believed, cached)
    assert (beliefs.holdings(KEY).reuse > before) is is_evidence
