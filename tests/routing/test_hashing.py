"""Rendezvous hashing: the same everywhere, fair, and minimal in what a change moves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.hashing import first, mixed, ranked, roll, spread, weights
from tests.routing.fields import fleets, view

KEYS = st.binary(min_size=16, max_size=16)


def test_weights_are_the_same_on_every_machine() -> None:
    assert weights([view("a"), view("b")], spread(b"key")) == [
        6510673090702505761,
        15943705154227997579,
    ]


@given(KEYS, fleets(plain=True))
def test_a_roll_weighs_as_the_views_do(key: bytes, fleet: list) -> None:  # type: ignore[type-arg]
    names = tuple(one.name for one in fleet)
    assert mixed(roll(names).seeds, spread(key)) == weights(fleet, spread(key))
    assert [names[place] for place in roll(names).places.values()] == list(roll(names).places) == list(names)


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


@given(KEYS, fleets(plain=True))
def test_the_first_is_the_first_of_all(key: bytes, fleet: list) -> None:  # type: ignore[type-arg]
    assert fleet[first(fleet, spread(key))] == ranked(fleet, key)[0]


def test_keys_spread_evenly_over_firsts_and_seconds() -> None:
    fleet = [view(name) for name in "abcd"]
    orders = [ranked(fleet, number.to_bytes(16, "big")) for number in range(6000)]
    pairs = Counter((order[0].name, order[1].name) for order in orders)
    assert len(pairs) == 12
    assert all(420 < count < 580 for count in pairs.values())
