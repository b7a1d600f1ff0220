from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.state.link import Link
from gateway.state.wire import Command, ErrorReply, Reply, StoreUnavailable


class FakeWire:
    """Answers every command with its first word, batch by batch, when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.broken: StoreUnavailable | None = None
        self.opened = self.closed = 0

    async def open(self) -> None:
        if self.broken is not None:
            raise self.broken
        self.opened += 1

    async def carry(self, commands: Sequence[Command]) -> list[Reply]:
        self.batches.append([str(command.words[0]) for command in commands])
        await self.flowing.wait()
        if self.broken is not None:
            raise self.broken
        return [_answer(command) for command in commands]

    async def close(self) -> None:
        self.closed += 1


def _answer(command: Command) -> Reply:
    word = command.words[0]
    if word == "FAIL":
        return ErrorReply("WRONGTYPE", "not that kind")
    assert isinstance(word, str)
    return word.encode()


def said(*words: str) -> list[Command]:
    return [Command((word,)) for word in words]


class World:
    def __init__(self, deadline_s: float = 30.0) -> None:
        self.wire = FakeWire()
        self.falls: list[str] = []
        self.link = Link(self.wire, deadline_s=deadline_s, on_down=lambda error: self.falls.append(str(error)))


async def passes(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_replies_come_back_to_whoever_asked() -> None:
    world = World()
    await world.link.open()
    first, second = world.link.ask(said("a", "b")), world.link.ask(said("c"))
    assert await first == [b"a", b"b"]
    assert await second == [b"c"]
    assert await world.link.call(Command(("d",))) == b"d"
    await world.link.close()


async def test_what_is_asked_meanwhile_goes_out_as_one_batch_in_order() -> None:
    world = World()
    await world.link.open()
    world.wire.flowing.clear()
    answers = [world.link.ask(said("first"))]
    await passes()
    answers += [world.link.ask(said(word)) for word in ("x", "y", "z")]
    world.wire.flowing.set()
    await asyncio.gather(*answers)
    assert world.wire.batches == [["first"], ["x", "y", "z"]]
    await world.link.close()


async def test_a_frozen_store_costs_one_deadline_altogether() -> None:
    world = World(deadline_s=0.02)
    await world.link.open()
    world.wire.flowing.clear()
    patient = world.link.ask(said("patient"), deadline_s=60)
    asked = [world.link.ask(said("a")), world.link.ask(said("b")), patient]
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(result) for result in results] == ["timeout: no answer within 0.02 s"] * 3
    assert world.falls == ["timeout: no answer within 0.02 s"]
    assert not world.link.is_up
    with pytest.raises(StoreUnavailable, match="down"):
        await world.link.call(Command(("later",)))
    assert all("later" not in batch for batch in world.wire.batches)


async def test_a_loop_that_stood_still_is_no_fault_of_the_store() -> None:
    world = World(deadline_s=0.02)
    await world.link.open()
    world.wire.flowing.clear()
    answer = world.link.ask(said("a"))
    loop = asyncio.get_running_loop()
    await passes()
    stop_at_s = loop.time() + 0.06
    while loop.time() < stop_at_s:  # the loop is busy beyond the deadline
        pass
    loop.call_soon(world.wire.flowing.set)
    assert await answer == [b"a"]
    await world.link.close()


async def test_an_error_reply_takes_the_link_down() -> None:
    world = World()
    await world.link.open()
    with pytest.raises(StoreUnavailable, match="refused: WRONGTYPE not that kind"):
        await world.link.ask(said("a", "FAIL"))
    assert world.falls == ["refused: WRONGTYPE not that kind"]


async def test_a_broken_wire_takes_it_down_and_opening_brings_it_up() -> None:
    world = World()
    await world.link.open()
    world.wire.broken = StoreUnavailable("no_connection", "gone")
    with pytest.raises(StoreUnavailable, match="no_connection: gone"):
        await world.link.ask(said("a"))
    with pytest.raises(StoreUnavailable):
        await world.link.open()
    assert not world.link.is_up
    world.wire.broken = None
    await world.link.open()
    assert await world.link.ask(said("b")) == [b"b"]
    assert world.falls == ["no_connection: gone"]
    await world.link.close()


async def test_what_nobody_waits_for_is_not_sent() -> None:
    world = World()
    await world.link.open()
    world.wire.flowing.clear()
    first = world.link.ask(said("first"))
    await passes()
    world.link.ask(said("unwanted")).cancel()
    world.wire.flowing.set()
    await first
    assert await world.link.ask(said("last")) == [b"last"]
    assert world.wire.batches == [["first"], ["last"]]
    await world.link.close()


async def test_closing_fails_what_waits() -> None:
    world = World()
    await world.link.open()
    world.wire.flowing.clear()
    answer = world.link.ask(said("a"))
    await passes()
    await world.link.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await answer
    assert world.wire.closed == 1
