from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import KvBudgetExhausted, TooManyTokens
from gateway.ports import Budgets
from gateway.state.memory import MemoryBudgets, MemoryReservation
from gateway.types import TenantId

A, B = TenantId("a"), TenantId("b")


class HandClock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_s(self) -> float:
        return self.seconds


def budgets(*, total_kv_tokens: int | None = None, lease_s: float = 3_600) -> tuple[MemoryBudgets, HandClock]:
    clock = HandClock()
    return MemoryBudgets(clock, lambda: 0.0, total_kv_tokens=total_kv_tokens, lease_s=lease_s), clock


async def queued(store: MemoryBudgets, tenant: TenantId, count: int) -> None:
    """Let started tasks run until so many stand in the queue."""
    for _ in range(100):
        if store.waiting_count(tenant) == count:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{store.waiting_count(tenant)} are waiting, not {count}")


def test_it_fits_the_port() -> None:
    port: Budgets = budgets()[0]
    assert port.inflight_kv_tokens(A) == 0


async def test_without_a_limit_everything_fits_and_is_accounted() -> None:
    store, _ = budgets()
    reservations = [await store.reserve(A, 10**9, None, 0) for _ in range(3)]
    assert store.inflight_kv_tokens(A) == 3 * 10**9
    for reservation in reservations:
        reservation.release()
    assert store.inflight_kv_tokens(A) == 0


async def test_ending_twice_gives_back_once() -> None:
    store, _ = budgets()
    first, second = await store.reserve(A, 60, 100, 0), await store.reserve(A, 40, 100, 0)
    first.settle(55)
    first.release()
    first.settle(55)
    assert store.inflight_kv_tokens(A) == 40
    second.release()


async def test_what_could_never_fit_is_the_requests_own_fault() -> None:
    store, _ = budgets(total_kv_tokens=50)
    with pytest.raises(TooManyTokens) as caught:
        await store.reserve(A, 101, 100, 10)
    assert (caught.value.rule, caught.value.status) == ("kv_tokens_in_flight", 400)
    assert caught.value.message == "The request may need 101 KV tokens, more than the whole budget of 50."
    assert store.waiting_count(A) == 0


async def test_a_release_wakes_the_next_at_once_in_order() -> None:
    store, _ = budgets()
    holder = await store.reserve(A, 100, 100, 10)
    order: list[str] = []

    async def take(name: str) -> MemoryReservation:
        reservation = await store.reserve(A, 60, 100, 10)
        order.append(name)
        return reservation

    first, second = asyncio.create_task(take("first")), asyncio.create_task(take("second"))
    await queued(store, A, 2)
    holder.release()
    assert store.inflight_kv_tokens(A) == 60  # granted inside release, before any other task ran
    (await first).release()
    (await second).release()
    assert order == ["first", "second"]
    assert store.inflight_kv_tokens(A) == 0


async def test_another_tenant_does_not_wait_behind_a_full_one() -> None:
    store, _ = budgets()
    await store.reserve(A, 100, 100, 0)
    waiting = asyncio.create_task(store.reserve(A, 1, 100, 10))
    await queued(store, A, 1)
    (await store.reserve(B, 100, 100, 0)).release()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_without_patience_a_full_budget_is_refused_with_numbers_and_a_time() -> None:
    store, clock = budgets()
    (await store.reserve(A, 100, 100, 0)).release()
    held = await store.reserve(A, 100, 100, 0)
    clock.seconds = 8
    held.release()
    await store.reserve(A, 80, 100, 0)
    with pytest.raises(KvBudgetExhausted) as caught:
        await store.reserve(A, 30, 100, 0)
    assert caught.value.message == "The request may need 30 KV tokens; 80 of 100 are in flight."
    assert caught.value.retry_after_s is not None
    assert 1 <= caught.value.retry_after_s < 2  # 10 tokens of 80 that are held for about 4 s
    assert store.waiting_count(A) == 0


async def test_what_would_wait_too_long_is_refused_at_once() -> None:
    store, clock = budgets()
    held = await store.reserve(A, 100, 100, 0)
    clock.seconds = 30
    held.release()
    await store.reserve(A, 100, 100, 0)
    with pytest.raises(KvBudgetExhausted) as caught:
        await store.reserve(A, 100, 100, 5)
    assert caught.value.retry_after_s == 30


async def test_a_wait_ends_with_its_timeout_and_leaves_nothing() -> None:
    store, _ = budgets()
    held = await store.reserve(A, 100, 100, 0)
    with pytest.raises(KvBudgetExhausted) as caught:
        await store.reserve(A, 1, 100, 0.01)
    assert caught.value.retry_after_s == 1
    assert store.waiting_count(A) == 0
    held.release()
    assert store.inflight_kv_tokens(A) == 0


async def test_a_cancelled_waiter_leaves_nothing_and_lets_others_pass() -> None:
    store, _ = budgets()
    held = await store.reserve(A, 50, 100, 0)
    large = asyncio.create_task(store.reserve(A, 90, 100, 10))
    await queued(store, A, 1)
    small = asyncio.create_task(store.reserve(A, 50, 100, 10))
    await queued(store, A, 2)
    large.cancel()
    await asyncio.gather(large, return_exceptions=True)
    (await small).release()
    held.release()
    assert (store.inflight_kv_tokens(A), store.waiting_count(A)) == (0, 0)


async def test_a_grant_that_meets_a_cancellation_is_given_back() -> None:
    store, _ = budgets()
    held = await store.reserve(A, 100, 100, 0)
    waiting = asyncio.create_task(store.reserve(A, 70, 100, 10))
    await queued(store, A, 1)
    held.release()
    assert store.inflight_kv_tokens(A) == 70
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (store.inflight_kv_tokens(A), store.waiting_count(A)) == (0, 0)


async def test_a_grant_in_the_moment_of_the_timeout_stands() -> None:
    store, _ = budgets()
    held = await store.reserve(A, 100, 100, 0)
    waiting = asyncio.create_task(store.reserve(A, 70, 100, 10))
    await queued(store, A, 1)
    ticket = next(iter(store._queue._lanes[A].tickets.values()))
    held.release()
    store._give_up(ticket, 10)  # the timer fires before the waiter's task runs
    (await waiting).release()
    assert store.inflight_kv_tokens(A) == 0


async def test_a_release_after_a_cancellation_passes_the_dead_waiter_over() -> None:
    store, _ = budgets()
    held = await store.reserve(A, 100, 100, 0)
    dead = asyncio.create_task(store.reserve(A, 100, 100, 10))
    await queued(store, A, 1)
    alive = asyncio.create_task(store.reserve(A, 100, 100, 10))
    await queued(store, A, 2)
    dead.cancel()
    held.release()
    await asyncio.gather(dead, return_exceptions=True)
    (await alive).release()
    assert store.inflight_kv_tokens(A) == 0


async def test_common_room_is_shared_fairly() -> None:
    store, _ = budgets(total_kv_tokens=100)
    held = await store.reserve(A, 100, None, 0)
    order: list[TenantId] = []

    async def take(tenant: TenantId) -> None:
        reservation = await store.reserve(tenant, 100, None, 10)
        order.append(tenant)
        reservation.release()

    tasks = [asyncio.create_task(take(A)) for _ in range(5)]
    await queued(store, A, 5)
    tasks.append(asyncio.create_task(take(B)))
    await queued(store, B, 1)
    held.release()
    await asyncio.gather(*tasks)
    assert B in order[:2]


async def test_common_room_that_would_take_too_long_is_refused() -> None:
    store, clock = budgets(total_kv_tokens=100)
    held = await store.reserve(A, 100, None, 0)
    clock.seconds = 40
    held.release()
    await store.reserve(A, 100, None, 0)
    with pytest.raises(KvBudgetExhausted, match=r"need 100 KV tokens; 0 are in flight"):
        await store.reserve(B, 100, None, 10)


async def test_a_lost_reservation_comes_back_with_its_lease() -> None:
    store, clock = budgets(lease_s=5)
    lost = await store.reserve(A, 100, 100, 0)
    clock.seconds = 6
    (await store.reserve(A, 100, 100, 0)).release()
    lost.release()
    assert store.inflight_kv_tokens(A) == 0


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 60), st.integers(0, 3), st.booleans()), max_size=25),
    st.sampled_from([None, 80]),
)
def test_no_history_exceeds_a_limit_and_every_history_ends_at_zero(
    wishes: list[tuple[TenantId, int, int, bool]], total: int | None
) -> None:
    async def history() -> None:
        store, _ = budgets(total_kv_tokens=total)

        async def live(tenant: TenantId, tokens: int, turns: int) -> None:
            reservation = await store.reserve(tenant, tokens, 60, 10)
            try:
                for _ in range(turns):
                    inflight = store.inflight_kv_tokens(A), store.inflight_kv_tokens(B)
                    assert max(inflight) <= 60
                    assert total is None or sum(inflight) <= total
                    await asyncio.sleep(0)
            finally:
                reservation.release()

        tasks = [asyncio.create_task(live(tenant, tokens, turns)) for tenant, tokens, turns, _ in wishes]
        await asyncio.sleep(0)
        for task, (*_, cancelled) in zip(tasks, wishes, strict=True):
            if cancelled:
                task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in results if isinstance(result, Exception)] == []
        assert [store.inflight_kv_tokens(tenant) + store.waiting_count(tenant) for tenant in (A, B)] == [0, 0]

    asyncio.run(history())
