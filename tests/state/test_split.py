from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.quota.store import Denied, Granted
from gateway.state.memory import MemoryStore
from gateway.state.split import SplitStore
from gateway.types import TenantId

A = TenantId("a")
NOW_US = 1_790_000_000 * MICROSECONDS


def claim(amount: int, *charges: Charge, limit: int | None = 100) -> Claim:
    return Claim(tenant=A, holds=(Hold(Unit.KV_TOKENS, amount, limit),), charges=charges)


def granted(store: SplitStore | MemoryStore, number: int, asked: Claim, now_us: int = NOW_US) -> bool:
    return isinstance(store.take(asked, ReservationId(number), now_us), Granted)


def test_each_of_two_has_half_of_what_may_be_in_flight() -> None:
    store = SplitStore(2)
    assert granted(store, 1, claim(30))
    assert granted(store, 2, claim(20))
    denied = store.take(claim(1), ReservationId(3), NOW_US)
    assert isinstance(denied, Denied)
    assert (denied.limit, denied.in_use) == (Hold(Unit.KV_TOKENS, 1, 100), 50)
    assert store.release(ReservationId(1), NOW_US)
    assert granted(store, 3, claim(1))
    assert granted(store, 4, claim(10**9, limit=None))


def test_one_that_is_larger_than_the_part_passes_alone_and_one_larger_than_the_whole_never() -> None:
    store = SplitStore(4)
    assert granted(store, 1, claim(100))
    assert not granted(store, 2, claim(1))
    assert store.release(ReservationId(1), NOW_US)
    assert not granted(store, 3, claim(101))


def test_a_rate_drains_at_its_part_and_names_the_whole() -> None:
    store, images = SplitStore(2), Charge(Unit.IMAGES, 1, Rate(10, 60))
    assert [granted(store, number, claim(0, images)) for number in range(7)] == [True] * 5 + [False] * 2
    denied = store.take(claim(0, images), ReservationId(9), NOW_US)
    assert isinstance(denied, Denied)
    assert (denied.limit, denied.wait_us) == (images, 12 * MICROSECONDS)
    assert granted(store, 9, claim(0, images), NOW_US + 12 * MICROSECONDS)


def test_what_was_not_used_comes_back_in_full() -> None:
    store, tokens = SplitStore(2), Charge(Unit.TOKENS, 400, Rate(1_000, 60))
    assert granted(store, 1, claim(0, tokens))
    assert not granted(store, 2, claim(0, tokens))
    assert store.settle(ReservationId(1), [0], NOW_US)
    assert granted(store, 2, claim(0, tokens))
    assert not store.settle(ReservationId(1), [0], NOW_US)
    assert list(store.renew([ReservationId(1), ReservationId(2)], NOW_US)) == [ReservationId(1)]
    assert list(store.expire(NOW_US)) == []


def test_a_charge_larger_than_the_part_of_a_burst_passes_an_empty_bucket() -> None:
    store, large = SplitStore(4), Charge(Unit.TOKENS, 900, Rate(1_000, 60))
    assert granted(store, 1, claim(0, large))
    assert not granted(store, 2, claim(0, large))
    assert not granted(SplitStore(4), 1, claim(0, replace_amount(large, 1_001)))


def replace_amount(charge: Charge, amount: int) -> Charge:
    return charge._replace(amount=amount)


@given(
    processes=st.integers(2, 8),
    asked=st.lists(st.tuples(st.integers(0, 7), st.integers(1, 12)), max_size=60),
    limit=st.integers(100, 200),
)
def test_all_together_stay_within_limits_and_rates(processes: int, asked: list[tuple[int, int]], limit: int) -> None:
    stores = [SplitStore(processes) for _ in range(processes)]
    passed = 0
    for number, (which, amount) in enumerate(asked):
        charge = Charge(Unit.TOKENS, amount, Rate(limit, 60))
        if granted(stores[which % processes], number, claim(amount, charge, limit=limit)):
            passed += amount
    assert passed <= limit


@pytest.mark.parametrize("processes", [2, 3, 64])
def test_a_rate_of_one_still_passes_one(processes: int) -> None:
    assert granted(SplitStore(processes), 1, claim(0, Charge(Unit.REQUESTS, 1, Rate(1, 1))))
