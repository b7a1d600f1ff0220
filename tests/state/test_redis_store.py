"""The store in Redis against the one in memory, on the same random histories; and what only a shared one must do."""

from __future__ import annotations

import asyncio
import inspect
from typing import ClassVar, TypeVar

from hypothesis import settings

from gateway.quota.store import Maybe, Store
from gateway.state.link import Link
from gateway.state.memory import MemoryStore
from gateway.state.redis import RedisWire
from gateway.state.redis_store import RedisStore
from gateway.state.scripts import SCRIPTS
from gateway.state.settings import RedisSettings
from gateway.types import TenantId
from tests.state.redis_server import RedisServer, running
from tests.state.store_machine import LEASE_S, StoreMachine

T = TypeVar("T")
A, B = TenantId("a"), TenantId("b")


def link_to(server: RedisServer, deadline_s: float = 30.0) -> Link:
    return Link(RedisWire(RedisSettings(server.unix_url), SCRIPTS), deadline_s=deadline_s, on_down=lambda _: None)


class LockStep(StoreMachine):
    """One loop and one link for all histories; each begins with an empty server."""

    server: ClassVar[RedisServer]
    runner: ClassVar[asyncio.Runner]
    link: ClassVar[Link]

    def make_stores(self) -> list[Store]:
        self.server.ask("FLUSHALL")
        ask = self.link.ask
        return [
            MemoryStore(LEASE_S),
            RedisStore(ask, prefix="vlmgw", replica="r1", lease_s=LEASE_S, own_clock=False),
        ]

    def answer(self, maybe: Maybe[T]) -> T:
        async def wait() -> T:
            return await maybe if inspect.isawaitable(maybe) else maybe

        return self.runner.run(wait())


class TestLockStep(LockStep.TestCase):  # type: ignore[misc,valid-type]  # hypothesis makes it at run time
    settings = settings(max_examples=50, stateful_step_count=30)

    @classmethod
    def setUpClass(cls) -> None:
        cls.running = running()
        LockStep.server = cls.running.__enter__()
        LockStep.runner = asyncio.Runner()
        LockStep.link = link_to(LockStep.server)
        LockStep.runner.run(LockStep.link.open())

    @classmethod
    def tearDownClass(cls) -> None:
        LockStep.runner.run(LockStep.link.close())
        LockStep.runner.close()
        cls.running.__exit__(None, None, None)
