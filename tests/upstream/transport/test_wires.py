"""Exchanges in flight, under suspicion, cut."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import BackendLost, NotTaken
from gateway.upstream.transport.wires import Wires
from tests.upstream.scripted import Exchange, ScriptedEngine, until
from tests.upstream.transport.wire import LARGE_BYTES, opened, post, whole


async def silent(exchange: Exchange) -> None:
    await exchange.read_body()
    await exchange.left()


async def test_who_waits_for_an_answer_is_cut_after_the_grace() -> None:
    async with ScriptedEngine(silent) as engine, opened(engine.url) as (transport, backend):
        waiting = asyncio.create_task(transport.forward(backend, post(b"{}")))
        await until(lambda: bool(engine.exchanges) and bool(engine.exchanges[0].body))
        assert backend.wires.cut_silent(100.0, 5.0) == 0, "nobody is suspect"
        backend.wires.suspect(100.0)
        backend.wires.suspect(103.0)
        assert backend.wires.cut_silent(104.9, 5.0) == 0
        assert backend.wires.has_suspects
        assert backend.wires.cut_silent(105.0, 5.0) == 1
        with pytest.raises(BackendLost):
            await waiting
        assert (len(backend.wires), backend.wires.cut_count, backend.wires.has_suspects) == (0, 1, False)


async def test_who_still_receives_goes_on() -> None:
    step = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await step.wait()
        await exchange.send(b"1\r\nb\r\n")
        await exchange.left()

    async with ScriptedEngine(slow) as engine, opened(engine.url) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        assert await response.chunk() == b"a"
        backend.wires.suspect(0.0)
        step.set()
        assert await response.chunk() == b"b"
        assert backend.wires.cut_silent(5.0, 5.0) == 0, "it has received something"
        assert backend.wires.cut_silent(10.0, 5.0) == 1
        with pytest.raises(BackendLost):
            await response.chunk()
        response.close()
        response.close()
        assert len(backend.wires) == 0


async def test_a_body_that_was_not_all_taken_can_go_elsewhere() -> None:
    over = asyncio.Event()

    async def deaf(_exchange: Exchange) -> None:
        await over.wait()

    async with ScriptedEngine(deaf) as engine, opened(engine.url) as (transport, backend):
        sending = asyncio.create_task(transport.forward(backend, post(bytes(LARGE_BYTES))))
        await until(lambda: bool(engine.exchanges))
        backend.wires.suspect(0.0)
        assert backend.wires.cut_silent(1.0, 1.0) == 1
        with pytest.raises(NotTaken) as caught:
            await sending
        assert caught.value.reason == "body_not_sent"
        over.set()


async def test_what_is_over_is_no_suspect() -> None:
    async def answer(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with ScriptedEngine(answer) as engine, opened(engine.url) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        backend.wires.suspect(0.0)
        assert await whole(response) == b"ok"
        assert not backend.wires.has_suspects
        assert len(Wires()) == len(backend.wires) == 0
