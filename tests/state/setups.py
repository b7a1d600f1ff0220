"""Budgets over a store in memory, a clock set by hand, and small claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.quota.claim import Charge, Claim, Hold, Unit
from gateway.quota.gcra import Rate
from gateway.state.budgets import LocalBudgets
from gateway.state.memory import MemoryStore
from gateway.types import TenantId

A, B = TenantId("a"), TenantId("b")
TEN_A_MINUTE = Rate(10, 60)


def images(count: int) -> tuple[Charge, ...]:
    return (Charge(Unit.IMAGES, count, TEN_A_MINUTE),)


class HandClock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now_s(self) -> float:
        return self.seconds


class Setup:
    """Budgets over a store in memory, with common room for ``room`` KV tokens of what was placed (None: endless)."""

    def __init__(self, room: int | None = None, poll_s: float = 0.001) -> None:
        self.clock = HandClock()
        self.store = MemoryStore()
        self.room = room
        self.budgets = LocalBudgets(
            self.store, self.clock, lambda: 0.0, lambda: 1_790_000_000.0, has_room=self._has_room, poll_s=poll_s
        )

    def _has_room(self, claim: Claim) -> bool:
        placed = sum(self.store.in_flight(tenant, Unit.KV_TOKENS) for tenant in (A, B))
        return self.room is None or placed + claim.held(Unit.KV_TOKENS) <= self.room

    def in_flight(self, tenant: TenantId) -> int:
        assert self.budgets.inflight_kv_tokens(tenant) == self.store.in_flight(tenant, Unit.KV_TOKENS)
        return self.budgets.inflight_kv_tokens(tenant)


def claim(
    tenant: TenantId,
    kv_tokens: int,
    limit: int | None = 100,
    patience_s: float = 0.0,
    *,
    charges: tuple[Charge, ...] = (),
    shadow: bool = False,
    requests: int | None = None,
) -> Claim:
    return Claim(
        tenant=tenant,
        holds=(Hold(Unit.KV_TOKENS, kv_tokens, limit), Hold(Unit.REQUESTS, 1, requests)),
        charges=charges,
        queue_timeout_s=patience_s,
        cost=kv_tokens,
        shadow=shadow,
    )


async def until(condition: Callable[[], bool]) -> None:
    """Let started tasks run until it is so."""
    for _ in range(200):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def queued(setup: Setup, tenant: TenantId, count: int) -> None:
    await until(lambda: setup.budgets.waiting_count(tenant) == count)
