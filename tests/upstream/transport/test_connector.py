"""Pooled connections: used again while they are alive and young, never after the engine closed them or soon may."""

from __future__ import annotations

import asyncio
import select
import socket
import time
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

from gateway.errors import BackendLost, NotTaken
from gateway.upstream.transport.connector import FreshConnector
from tests.upstream.scripted import Exchange, ScriptedEngine, answering, json_response, until
from tests.upstream.transport.wire import opened, post, whole


async def test_connections_are_used_again() -> None:
    async with (
        ScriptedEngine(answering(json_response(b"{}"))) as engine,
        opened(engine.url, keepalive_s=60) as (transport, backend),
    ):
        for _ in range(5):
            await whole(await transport.forward(backend, post(b"{}")))
        assert engine.connections == 1


async def test_the_connection_that_was_used_last_is_used_first() -> None:
    """So that those nobody needs any more grow old and are closed by us, instead of each being used shortly before."""
    together = asyncio.Barrier(3)

    async def at_once(exchange: Exchange) -> None:
        await exchange.read_body()
        await together.wait()
        await exchange.send(json_response(b"{}"))

    async with (
        ScriptedEngine(answering(json_response(b"{}")), [at_once] * 3) as engine,
        opened(engine.url, keepalive_s=60) as (transport, backend),
    ):
        responses = await asyncio.gather(*(transport.forward(backend, post(b"{}")) for _ in range(3)))
        assert engine.connections == 3
        for response in responses:
            await whole(response)
        for _ in range(4):
            await whole(await transport.forward(backend, post(b"{}")))
        assert len({exchange.writer for exchange in engine.exchanges[3:]}) == 1
        assert engine.connections == 3


async def test_a_connection_whose_answer_was_read_late_is_as_old_as_its_engine_takes_it_for() -> None:
    """The loop stands still with an answer in the kernel, longer than a connection may be idle. Released this moment,
    it is too old all the same: its engine has been counting since it answered."""
    limit_s = 0.2

    async def late(exchange: Exchange) -> None:
        await exchange.read_body()
        exchange.writer.write(json_response(b"{}"))  # an empty buffer: it is sent at once
        time.sleep(2 * limit_s)  # noqa: ASYNC251 - this is the loop that stands still

    async with (
        ScriptedEngine(answering(json_response(b"{}")), [late]) as engine,
        opened(engine.url, keepalive_s=limit_s) as (transport, backend),
    ):
        for _ in range(2):
            await whole(await transport.forward(backend, post(b"{}")))
        assert engine.connections == 2
        assert len(engine.exchanges) == 2


class Late(FreshConnector):
    """Hears of its first ``ends`` connections when the engine has closed them, as a loop does that stood still."""

    def __init__(self, listening: socket.socket, ends: int) -> None:
        super().__init__(keepalive_s=60)
        self._listening = listening
        self._ends = ends
        self.peers: list[socket.socket] = []

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        protocol = await super()._create_connection(req, traces, timeout)
        peer, _ = self._listening.accept()
        self.peers.append(peer)
        if len(self.peers) <= self._ends:
            peer.close()
            assert protocol.transport is not None
            client = protocol.transport.get_extra_info("socket")
            ended = select.poll()
            ended.register(client.fileno(), select.POLLRDHUP)
            assert ended.poll(10_000), "its end"
        return protocol


@pytest.mark.parametrize("ends", [1, 2])
async def test_a_new_connection_that_ended_before_it_is_used_took_nothing(ends: int) -> None:
    """Another one is opened, once; then it is told that nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with opened(f"http://127.0.0.1:{listening.getsockname()[1]}") as (transport, backend):
            assert transport._connector is not None
            await transport._connector.close()
            transport._connector = late = Late(listening, ends)
            asking = asyncio.create_task(transport.forward(backend, post(b"{}")))
            if ends == 2:
                with pytest.raises(NotTaken, match="connect"):
                    await asking
            else:
                await until(lambda: len(late.peers) == 2)
                reader, writer = await asyncio.open_connection(sock=late.peers[1])
                assert (await reader.readuntil(b"\r\n\r\n{}")).startswith(b"POST ")
                writer.write(json_response(b"{}"))
                assert await whole(await asking) == b"{}"
                writer.close()
                await writer.wait_closed()
            assert len(late.peers) == 2
            await late.close()


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


@pytest.mark.parametrize("uncalled", [json_response(b"another's"), b"HTTP/1.1 200 OK\r\nContent-", b"\r\n"])
async def test_an_answer_that_nobody_asked_for_is_nobodys(uncalled: bytes) -> None:
    """Sent between two exchanges, and read by the loop: the kernel has nothing to tell of it any more."""

    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")

    async with ScriptedEngine(script) as engine, opened(engine.url, keepalive_s=60) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        protocol = response._connection.protocol
        assert protocol is not None
        await whole(response)
        await engine.exchanges[0].send(uncalled)
        await until(lambda: protocol.should_close)
        assert await whole(await transport.forward(backend, post(b"{}"))) == b"{}"
        assert engine.connections == 2


@pytest.mark.parametrize("broken", [b"5\r\nhelloXX\r\n", b"5\r\nhello\r\nZZ\r\n"])
async def test_a_body_that_breaks_its_own_framing_is_lost_at_once(broken: bytes) -> None:
    """With an hour's patience: who waited for the silence to end would not come back in time."""
    has_begun = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await has_begun.wait()
        await exchange.send(broken)
        await exchange.left()
        exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend), asyncio.timeout(30):
        response = await transport.forward(backend, post(b"{}"))
        response.limit_silence(3_600)
        has_begun.set()
        with pytest.raises(BackendLost):
            await whole(response)
        response.close()
        await until(lambda: engine.closed_connections == 1)


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
