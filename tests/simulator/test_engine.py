from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.simulator.engine import Engine
from gateway.simulator.geometry import Fitted
from gateway.simulator.metrics import Tally
from gateway.simulator.prompt import Prompt, Span
from gateway.simulator.raster import Picture, Raster
from gateway.simulator.refusal import EngineLost, QueueFull
from gateway.simulator.settings import SimulatorSettings


def _engine(**changes: Any) -> Engine:
    small = {"kv_tokens": 64, "max_model_len": 64, "block_size": 16, "speed": 0.0}
    return Engine(SimulatorSettings(**(small | changes)), Tally())


def _prompt(length: int, start: int = 0, **fields: Any) -> Prompt:
    return Prompt(tuple(range(start, start + length)), **fields)


async def _hold(engine: Engine, prompt: Prompt, entered: asyncio.Event, leave: asyncio.Event) -> None:
    async with engine.admitted(prompt, 1):
        entered.set()
        await leave.wait()


async def test_a_second_identical_prompt_hits_its_full_blocks() -> None:
    engine = _engine(kv_tokens=160)
    async with engine.admitted(_prompt(40), 1) as ticket:
        assert (ticket.cached_tokens, ticket.created_cache_tokens) == (0, 32)
    async with engine.admitted(_prompt(40), 1) as ticket:
        assert (ticket.cached_tokens, ticket.created_cache_tokens) == (32, 0)


async def test_the_last_prompt_token_is_never_cached() -> None:
    engine = _engine(kv_tokens=160)
    for cached in (0, 16):
        async with engine.admitted(_prompt(32), 1) as ticket:
            assert ticket.cached_tokens == cached


async def test_a_request_waits_for_room_and_gets_it() -> None:
    engine = _engine()
    entered, leave, second_entered = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_hold(engine, _prompt(40), entered, leave))
        await entered.wait()
        tasks.create_task(_hold(engine, _prompt(40, start=500), second_entered, leave))
        await asyncio.sleep(0)
        load = engine.load()
        assert (load.running, load.waiting, load.waiting_tokens, load.kv_usage) == (1, 1, 40, 0.75)
        leave.set()
        await second_entered.wait()
    assert engine.load().running == 0
    assert engine.pool.used_blocks == 0


async def test_a_full_queue_refuses_and_an_idle_engine_never_does() -> None:
    engine = _engine(max_num_queued_reqs=0, max_num_seqs=1)
    entered, leave = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_hold(engine, _prompt(8), entered, leave))
        await entered.wait()
        with pytest.raises(QueueFull):
            async with engine.admitted(_prompt(8), 1):
                pytest.fail("admitted")
        leave.set()
    async with engine.admitted(_prompt(8), 1):
        pass


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_a_cancelled_request_leaves_nothing_behind(is_waiting: bool) -> None:
    engine = _engine(max_num_seqs=1)
    entered, leave, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(_hold(engine, _prompt(8), entered, leave))
    await entered.wait()
    second = asyncio.create_task(_hold(engine, _prompt(8, start=90), never, leave))
    await asyncio.sleep(0)
    victim, survivor = (second, first) if is_waiting else (first, second)
    victim.cancel()
    with pytest.raises(asyncio.CancelledError):
        await victim
    leave.set()
    await survivor
    load = engine.load()
    assert (load.running, load.waiting, engine.pool.used_blocks) == (0, 0, 0)


async def test_cancelling_in_the_tick_of_admission_gives_the_room_back() -> None:
    engine = _engine(max_num_seqs=1)
    entered, leave, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(_hold(engine, _prompt(8), entered, leave))
    await entered.wait()
    second = asyncio.create_task(_hold(engine, _prompt(8, start=90), never, leave))
    await asyncio.sleep(0)
    leave.set()
    await first
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert (engine.load().running, engine.pool.used_blocks) == (0, 0)


@pytest.mark.parametrize("ends", ["release", "loss"])
async def test_one_that_left_the_queue_this_moment_holds_nobody_up(ends: str) -> None:
    """It is cancelled, and its own task has not come to withdraw it when the queue is looked at."""
    engine = _engine(max_num_seqs=1)
    entered, leave, third_entered = asyncio.Event(), asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(_hold(engine, _prompt(8), entered, leave))
    await entered.wait()
    second = asyncio.create_task(_hold(engine, _prompt(8, start=90), asyncio.Event(), leave))
    third = asyncio.create_task(_hold(engine, _prompt(8, start=180), third_entered, leave))
    await asyncio.sleep(0)
    leave.set()
    second.cancel()
    if ends == "loss":
        engine.lose()
    results = await asyncio.gather(first, second, third, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    assert results[0] is None
    assert isinstance(results[2], EngineLost) is (ends == "loss")
    assert third_entered.is_set() is (ends == "release")
    assert (engine.load().running, engine.load().waiting, engine.pool.used_blocks) == (0, 0, 0)


async def test_a_lost_engine_ends_running_and_waiting_requests() -> None:
    engine = _engine(max_num_seqs=1, speed=0.001)

    async def run(start: int) -> None:
        async with engine.admitted(_prompt(8, start), 1) as ticket:
            await ticket.prefill()

    tasks = [asyncio.create_task(run(start)) for start in (0, 90)]
    await asyncio.sleep(0)
    engine.lose()
    assert [type(result) for result in await asyncio.gather(*tasks, return_exceptions=True)] == [EngineLost, EngineLost]
    assert engine.load().running == 0
    with pytest.raises(EngineLost):
        await run(200)


async def test_a_paused_engine_admits_nothing_until_resumed() -> None:
    engine = _engine()
    engine.pause()
    entered, leave = asyncio.Event(), asyncio.Event()
    leave.set()
    task = asyncio.create_task(_hold(engine, _prompt(8), entered, leave))
    await asyncio.sleep(0)
    assert (engine.is_paused, engine.load().waiting, entered.is_set()) == (True, 1, False)
    engine.resume()
    await task
    assert entered.is_set()


async def test_a_known_picture_is_not_encoded_again() -> None:
    engine = _engine(kv_tokens=160)
    picture = Picture(Raster("jpeg", 64, 64, 1, 64, 64, (0, 0, 0), "f"), Fitted(2, 2, 16), "id")
    for start in (0, 500):
        prompt = _prompt(20, start, spans=(Span(4, 4, "id"),), pictures=(picture,))
        async with engine.admitted(prompt, 1) as ticket:
            await ticket.prefill()
    tally = engine._tally
    assert (tally.encoder_queries, tally.encoder_hits) == (2, 1)
