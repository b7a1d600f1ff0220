"""Pooled connections: used again while they are alive, never after the engine closed them."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from gateway.errors import NotTaken
from tests.upstream.scripted import Exchange, ScriptedEngine, answering, json_response, until
from tests.upstream.transport.wire import opened, post, whole


async def test_connections_are_used_again() -> None:
    async with ScriptedEngine(answering(json_response(b"{}"))) as engine, opened(engine.url) as (transport, backend):
        for _ in range(5):
            await whole(await transport.forward(backend, post(b"{}")))
        assert engine.connections == 1


@pytest.mark.parametrize("way", ["fin", "reset"])
async def test_a_connection_closed_while_idle_is_not_used(way: str) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(json_response(b"{}", extra="Connection: keep-alive\r\n"))
        if way == "reset":
            exchange.reset()
        else:
            exchange.writer.close()

    def closed(number: int) -> bool:
        return engine.closed_connections == number

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        for number in range(1, 6):
            await whole(await transport.forward(backend, post(b"{}")))
            await until(partial(closed, number))
        assert len(engine.exchanges) == 5


async def test_a_backend_on_a_unix_socket_is_asked_there(tmp_path: Path) -> None:
    path = tmp_path / "engine.sock"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(json_response(b"{}", extra="Connection: close\r\n"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    async with opened(f"unix://{path}") as (transport, backend):
        assert backend.name == str(path)
        assert await whole(await transport.forward(backend, post(b"{}"))) == b"{}"
        server.close()
        await server.wait_closed()
        path.unlink(missing_ok=True)
        with pytest.raises(NotTaken, match=r"engine\.sock"):
            await transport.forward(backend, post(b"{}"))
