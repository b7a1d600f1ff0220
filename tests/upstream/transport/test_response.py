"""Responses: their end is proper or an error, and leaving them early is seen by the engine."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import BackendLost, BackendTimeout
from tests.upstream.scripted import Exchange, ScriptedEngine, until
from tests.upstream.transport.wire import opened, post


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("end", ["fin", "reset"])
async def test_a_response_that_breaks_off_is_lost(framing: str, end: str) -> None:
    got = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        head = b"Transfer-Encoding: chunked" if framing == "chunked" else b"Content-Length: 1000000"
        piece = b"5\r\nhello\r\n" if framing == "chunked" else b"hello"
        await exchange.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + piece)
        await got.wait()
        if end == "reset":
            exchange.reset()
        else:
            exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        assert await response.chunk() == b"hello"
        got.set()
        with pytest.raises(BackendLost):
            await response.chunk()
        response.close()


async def test_silence_within_the_response_is_a_timeout() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        await exchange.left()
        exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url, idle_timeout_s=0.2) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        with pytest.raises(BackendTimeout):
            await response.chunk()
        response.close()
        response.close()
        await until(lambda: engine.closed_connections == 1)


async def test_closing_before_the_end_is_seen_by_the_engine() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await exchange.left()
        exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        assert await response.chunk() == b"hello"
        response.close()
        await until(lambda: engine.closed_connections == 1)
