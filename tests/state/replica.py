"""One replica's end of a shared store, in the test's own loop: it counts, takes and ends by numbers."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.quota.store import Denied, Granted
from gateway.state.redis import RedisWire
from gateway.state.scripts import SCRIPTS
from gateway.state.settings import RedisSettings
from gateway.state.shared import SharedStore
from gateway.types import TenantId

A, B = TenantId("a"), TenantId("b")
# Long enough that a busy machine is not taken for a lost store; tests of deadlines bring their own.
PATIENT_S = 10.0
QUICK = RedisSettings("", deadline_s=PATIENT_S, connect_timeout_s=2.0, retry_s=0.05, lease_s=60.0)
IMAGES = Rate(6_000, 60, burst=600)  # 10 ms for each


class LoopClock:
    now_s = staticmethod(time.monotonic)


def claim(
    kv_tokens: int = 0, images: int = 0, *, tenant: TenantId = A, limit: int | None = 100, rate: Rate = IMAGES
) -> Claim:
    charges = (Charge(Unit.IMAGES, images, rate),) if images else ()
    return Claim(tenant=tenant, holds=(Hold(Unit.KV_TOKENS, kv_tokens, limit),), charges=charges)


class Replica:
    """``async with`` starts and stops it."""

    def __init__(self, name: str, url: str, base: RedisSettings = QUICK) -> None:
        self.name = name
        self.events: list[str] = []
        self.results: Counter[tuple[str, str]] = Counter()
        self.settings = replace(base, url=url)
        self.store = SharedStore(
            RedisWire(self.settings, SCRIPTS), self.settings, LoopClock(), lambda: 0.0,
            replica=name, say=self._say, observe=self._observe,
        )  # fmt: skip
        self.issued = 0

    def _say(self, event: str, **_: object) -> None:
        self.events.append(event)

    def _observe(self, operation: str, result: str, _seconds: float) -> None:
        self.results[operation, result] += 1

    async def __aenter__(self) -> Replica:
        await self.store.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store.stop()

    @staticmethod
    def now_us() -> int:
        return int(time.monotonic() * MICROSECONDS)

    async def ask(self, of: Claim) -> tuple[ReservationId, Granted | Denied]:
        self.issued += 1
        number = ReservationId(self.issued)
        outcome = self.store.take(of, number, self.now_us())
        answer = await outcome if inspect.isawaitable(outcome) else outcome
        assert isinstance(answer, Granted | Denied)
        return number, answer

    async def take(self, of: Claim) -> ReservationId | None:
        """The number of what was granted."""
        number, answer = await self.ask(of)
        return number if isinstance(answer, Granted) else None

    def release(self, *numbers: ReservationId | None) -> None:
        for number in numbers:
            assert number is not None
            assert self.store.release(number, self.now_us())

    def settle(self, number: ReservationId | None, costs_us: Sequence[int]) -> None:
        assert number is not None
        assert self.store.settle(number, costs_us, self.now_us())

    @property
    def is_degraded(self) -> bool:
        return self.store.facts().is_degraded

    async def until_shared(self) -> None:
        await until(lambda: not self.is_degraded, f"{self.name} shares again")


async def until(condition: Callable[[], bool], what: str, deadline_s: float = 30.0) -> None:
    """Poll; raises AssertionError naming what never came."""
    stop_at_s = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < stop_at_s, f"never came: {what}"
        await asyncio.sleep(0.005)
