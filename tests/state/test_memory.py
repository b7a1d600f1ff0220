from __future__ import annotations

import pytest
from hypothesis import settings

from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.quota.store import Denied, Granted, Store
from gateway.state.memory import MemoryStore
from gateway.types import TenantId
from tests.state.store_machine import LEASE_S, StoreMachine

A = TenantId("a")
ONE, TWO, THREE = ReservationId(1), ReservationId(2), ReservationId(3)
NOW_US = 1_790_000_000 * MICROSECONDS


class MemoryMachine(StoreMachine):
    def make_stores(self) -> list[Store]:
        return [MemoryStore(LEASE_S)]


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=60, stateful_step_count=40)


def claim(kv_tokens: int, *charges: Charge, limit: int | None = 100) -> Claim:
    return Claim(tenant=A, holds=(Hold(Unit.KV_TOKENS, kv_tokens, limit),), charges=charges)


def test_a_refusal_takes_nothing_and_names_the_hold_before_the_longest_wait() -> None:
    store = MemoryStore()
    images, tokens = Charge(Unit.IMAGES, 6, Rate(10, 60)), Charge(Unit.TOKENS, 600, Rate(1_000, 3_600))
    assert isinstance(store.take(claim(80, images, tokens), ONE, NOW_US), Granted)
    denied = store.take(claim(30, images, tokens), TWO, NOW_US)
    assert isinstance(denied, Denied)
    assert (denied.limit, denied.in_use, denied.wait_us) == (Hold(Unit.KV_TOKENS, 30, 100), 80, 720 * MICROSECONDS)
    denied = store.take(claim(20, images, tokens), TWO, NOW_US)
    assert isinstance(denied, Denied)
    assert (denied.limit, denied.in_use, denied.wait_us) == (tokens, 0, 720 * MICROSECONDS)
    assert (store.in_flight(A, Unit.KV_TOKENS), store.open_count) == (80, 1)
    assert isinstance(store.take(claim(20, images), TWO, NOW_US + 12 * MICROSECONDS), Granted)


def test_settling_refunds_the_estimate_or_charges_more() -> None:
    rate = Rate(100, 100)
    store = MemoryStore()
    store.take(claim(0, Charge(Unit.TOKENS, 80, rate)), ONE, NOW_US)
    assert store.settle(ONE, [30 * MICROSECONDS], NOW_US)
    granted = store.take(claim(0, Charge(Unit.TOKENS, 70, rate)), TWO, NOW_US)
    assert isinstance(granted, Granted)
    assert granted.tats_us == (NOW_US + 100 * MICROSECONDS,)
    assert store.settle(TWO, [170 * MICROSECONDS], NOW_US)
    denied = store.take(claim(0, Charge(Unit.TOKENS, 0, rate)), THREE, NOW_US)
    assert isinstance(denied, Denied)
    assert denied.wait_us == 100 * MICROSECONDS


def test_the_first_end_wins() -> None:
    store = MemoryStore()
    store.take(claim(10), ONE, NOW_US)
    assert store.release(ONE, NOW_US)
    assert not store.release(ONE, NOW_US)
    assert not store.settle(ONE, [], NOW_US)
    assert store.renew([ONE], NOW_US) == (ONE,)


def test_leases_end_in_order_and_renewal_moves_one_back() -> None:
    store = MemoryStore(lease_s=10)
    store.take(claim(1), ONE, NOW_US)
    store.take(claim(2), TWO, NOW_US + 1)
    assert store.renew([ONE], NOW_US + 5) == ()
    assert store.expire(NOW_US + 10 * MICROSECONDS + 1) == (TWO,)
    assert isinstance(store.take(claim(100), THREE, NOW_US + 11 * MICROSECONDS), Granted)
    assert store.in_flight(A, Unit.KV_TOKENS) == 100


def test_without_leases_a_request_may_last_for_days() -> None:
    rate = Rate(100, 100)
    store = MemoryStore()
    store.take(claim(80, Charge(Unit.TOKENS, 80, rate)), ONE, NOW_US)
    days_later_us = NOW_US + 7 * 86_400 * MICROSECONDS
    assert store.expire(days_later_us) == ()
    assert isinstance(store.take(claim(30), TWO, days_later_us), Denied)
    assert store.in_flight(A, Unit.KV_TOKENS) == 80
    assert store.settle(ONE, [200 * MICROSECONDS], days_later_us)
    assert isinstance(store.take(claim(0, Charge(Unit.TOKENS, 1, rate)), TWO, days_later_us), Denied)


def test_a_clock_that_steps_back_ends_nothing_early() -> None:
    store = MemoryStore(lease_s=10)
    store.take(claim(1), ONE, NOW_US)
    store.take(claim(1), TWO, NOW_US - 50 * MICROSECONDS)
    assert store.expire(NOW_US + 10 * MICROSECONDS - 1) == ()


def test_bugs_of_the_caller_are_told() -> None:
    store = MemoryStore()
    store.take(claim(1), ONE, NOW_US)
    with pytest.raises(ValueError, match="open already"):
        store.take(claim(1), ONE, NOW_US)
    with pytest.raises(ValueError, match="would end before it begins"):
        MemoryStore(lease_s=0)
