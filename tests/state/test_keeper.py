from __future__ import annotations

import asyncio
import time

from gateway.state.keeper import Keeper
from gateway.state.wire import Command, StoreUnavailable
from tests.state.test_link import FakeWire


class LoopClock:
    now_s = staticmethod(time.monotonic)


class World:
    def __init__(self) -> None:
        self.wire = FakeWire()
        self.events: list[str] = []
        self.restored = 0
        self.restore_fails = 0
        self.is_back = asyncio.Event()
        self.keeper = Keeper(
            self.wire, LoopClock(), lambda: 0.0, self.say,
            deadline_s=5, retry_s=0.05, restore=self.restore, on_down=lambda: self.events.append("down"),
        )  # fmt: skip

    async def restore(self) -> None:
        self.restored += 1
        if self.restore_fails:
            self.restore_fails -= 1
            raise StoreUnavailable("refused", "not yet")

    def say(self, event: str, **_: object) -> None:
        self.events.append(event)
        if event == "store_back":
            self.is_back.set()


async def test_it_opens_restores_and_says_nothing_of_a_healthy_start() -> None:
    world = World()
    await world.keeper.start(5)
    assert (world.keeper.link.is_up, world.restored, world.events) == (True, 1, [])
    await world.keeper.stop()
    assert (world.keeper.link.is_up, world.wire.closed) == (False, 1)


async def test_a_store_that_is_away_is_no_reason_not_to_start() -> None:
    world = World()
    world.wire.broken = StoreUnavailable("no_connection")
    await world.keeper.start(5)
    assert world.events == ["store_away"]
    world.wire.broken = None
    await asyncio.wait_for(world.is_back.wait(), 10)
    assert world.events == ["store_away", "store_back"]
    await world.keeper.stop()


async def test_patience_ends_while_a_store_accepts_and_says_nothing() -> None:
    world = World()

    async def never() -> None:
        await asyncio.Event().wait()

    world.wire.open = never  # type: ignore[method-assign]  # a server that is frozen while it is connected to
    await world.keeper.start(0.01)
    assert not world.keeper.link.is_up
    await world.keeper.stop()


async def test_it_opens_again_and_tells_each_change_once() -> None:
    world = World()
    await world.keeper.start(5)
    world.wire.broken = StoreUnavailable("no_connection")
    world.restore_fails = 2
    answer = world.keeper.link.ask([Command(("a",))])
    await asyncio.wait((answer,))
    assert world.events == ["store_away", "down"]
    world.wire.broken = None
    await asyncio.wait_for(world.is_back.wait(), 10)
    assert world.events == ["store_away", "down", "down", "down", "store_back"]  # each half-open one is given up
    assert world.restored == 4
    assert await world.keeper.link.call(Command(("b",))) == b"b"
    await world.keeper.stop()
