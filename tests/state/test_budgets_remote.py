"""The line before a store that answers later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from gateway.quota.claim import Claim, ReservationId, Unit, Used
from gateway.quota.store import Denied, Granted
from gateway.state.budgets import LocalBudgets
from gateway.state.memory import MemoryStore
from tests.state.setups import A, HandClock, claim, images, until


class RemoteStore:
    """A store behind a network: answers after a turn of the loop; ``gate`` holds answers back."""

    def __init__(self) -> None:
        self.inner = MemoryStore(lease_s=10)
        self.gate = asyncio.Event()
        self.gate.set()
        self.trips = 0

    async def take(self, claim: Claim, reservation: ReservationId, now_us: int) -> Granted | Denied:
        self.trips += 1
        outcome = self.inner.take(claim, reservation, now_us)
        await self.gate.wait()
        await asyncio.sleep(0)
        return outcome

    async def settle(self, reservation: ReservationId, costs_us: Sequence[int], now_us: int) -> bool:
        await asyncio.sleep(0)
        return self.inner.settle(reservation, costs_us, now_us)

    async def release(self, reservation: ReservationId, now_us: int) -> bool:
        await asyncio.sleep(0)
        return self.inner.release(reservation, now_us)

    async def renew(self, reservations: Sequence[ReservationId], now_us: int) -> Sequence[ReservationId]:
        return self.inner.renew(reservations, now_us)

    def expire(self, now_us: int) -> Awaitable[Sequence[ReservationId]]:
        raise AssertionError("nobody asks for it here")


def remote() -> tuple[LocalBudgets, RemoteStore, HandClock]:
    store, clock = RemoteStore(), HandClock()
    return LocalBudgets(store, clock, lambda: 0.0, lambda: 0.0, poll_s=0.001), store, clock


async def test_a_remote_store_costs_one_trip_and_is_not_waited_for_at_the_end() -> None:
    budgets, store, _ = remote()
    reservation = await budgets.reserve(claim(A, 100, charges=images(1)))
    assert store.trips == 1
    reservation.settle(Used(1, 1))
    assert budgets.inflight_kv_tokens(A) == 0
    await until(lambda: store.inner.open_count == 0)


async def test_what_a_remote_store_granted_to_nobody_is_given_back() -> None:
    budgets, store, _ = remote()
    store.gate.clear()
    task = asyncio.create_task(budgets.reserve(claim(A, 100)))
    await until(lambda: store.trips == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    store.gate.set()
    await until(lambda: store.inner.open_count == 0)


async def test_a_remote_grant_for_somebody_who_left_the_line_is_given_back() -> None:
    budgets, store, _ = remote()
    holder = await budgets.reserve(claim(A, 100))
    waiting = asyncio.create_task(budgets.reserve(claim(A, 50, patience_s=10)))
    await until(lambda: budgets.waiting_count(A) == 1)
    trips = store.trips
    store.gate.clear()
    holder.release()
    await until(lambda: store.trips > trips and store.inner.in_flight(A, Unit.KV_TOKENS) == 50)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    store.gate.set()
    await until(lambda: store.inner.open_count == 0)
