"""Rendezvous hashing: the same everywhere, fair, and minimal in what a change moves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.hashing import ranked, weight
from gateway.types import BackendName
from tests.routing.fields import fleets, view

KEYS = st.binary(min_size=16, max_size=16)


def test_weights_are_the_same_on_every_machine() -> None:
    assert weight(BackendName("a"), b"key") == 1133070004873984352
    assert weight(BackendName("a"), b"key") != weight(BackendName("b"), b"key")


@given(KEYS, fleets(plain=True), st.randoms())
def test_the_order_of_candidates_does_not_matter(key: bytes, fleet: list, random) -> None:  # type: ignore[no-untyped-def,type-arg]
    shuffled = list(fleet)
    random.shuffle(shuffled)
    assert ranked(shuffled, key) == ranked(fleet, key)


@given(KEYS, fleets(plain=True))
def test_removing_one_backend_moves_only_its_own_keys(key: bytes, fleet: list) -> None:  # type: ignore[type-arg]
    order = ranked(fleet, key)
    for gone in order:
        assert ranked([one for one in fleet if one is not gone], key) == [one for one in order if one is not gone]


def test_keys_spread_evenly() -> None:
    fleet = [view(name) for name in "abcd"]
    homes = Counter(ranked(fleet, number.to_bytes(16, "big"))[0].name for number in range(4000))
    assert all(900 < count < 1100 for count in homes.values())
