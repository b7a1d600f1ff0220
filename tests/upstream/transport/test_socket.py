"""A WebSocket to a backend: opened with a verdict, frames as they come."""

from __future__ import annotations

import pytest

from gateway.errors import BackendFailed, BackendLost, NotTaken
from gateway.ports import UpstreamRequest
from gateway.simulator.server import start
from gateway.simulator.settings import SimulatorSettings
from gateway.types.websocket import Frame, FrameKind
from tests.upstream.scripted import Exchange, ScriptedEngine, answering, json_response
from tests.upstream.transport.wire import opened

ASKED = UpstreamRequest("GET", "/v1/realtime", "", (("Sec-WebSocket-Key", "stale"), ("X-Own", "1")), (), 0)


async def test_frames_come_and_go_until_a_close() -> None:
    running = await start(SimulatorSettings(port=0))
    try:
        async with opened(running.url) as (transport, backend):
            socket = await transport.open_socket(backend, ASKED, ("realtime",), 1 << 20)
            assert socket.subprotocol == "realtime"
            assert b"session.created" in (await socket.receive(5)).data
            for frame in (Frame(FrameKind.TEXT, b"hi"), Frame(FrameKind.BINARY, b"\x00\xff")):
                await socket.send(frame)
                assert await socket.receive(5) == frame
            await socket.send(Frame(FrameKind.PING, b"?"))
            assert await socket.receive(5) == Frame(FrameKind.PONG, b"?")
            await socket.send(Frame(FrameKind.TEXT, b"bye 4001 done"))
            assert await socket.receive(5) == Frame(FrameKind.CLOSE, b"done", 4001)
            await socket.close(4001)
            await socket.close(4001)
    finally:
        await running.close()


async def test_another_answer_is_the_backends_failure() -> None:
    async with ScriptedEngine(answering(json_response(b"{}", "404 Not Found"))) as engine, opened(engine.url) as wire:
        with pytest.raises(BackendFailed, match="status 404"):
            await wire[0].open_socket(wire[1], ASKED, (), 1024)


async def test_a_redirect_is_an_answer_like_any_other() -> None:
    elsewhere = json_response(b"{}", "302 Found", extra="Location: /elsewhere\r\n")
    async with ScriptedEngine(answering(elsewhere)) as engine, opened(engine.url) as wire:
        with pytest.raises(BackendFailed, match="status 302"):
            await wire[0].open_socket(wire[1], ASKED, (), 1024)
        assert engine.targets == ["/v1/realtime"]


async def test_what_was_sent_may_have_been_taken_and_is_sent_once() -> None:
    async def hang_up(exchange: Exchange) -> None:
        exchange.writer.close()

    async with ScriptedEngine(hang_up) as engine, opened(engine.url) as wire:
        with pytest.raises(BackendLost):
            await wire[0].open_socket(wire[1], ASKED, (), 1024)
        assert engine.targets == ["/v1/realtime"]


async def test_nothing_is_added_that_the_client_did_not_send() -> None:
    async with ScriptedEngine(answering(json_response(b"{}", "404 Not Found"))) as engine, opened(engine.url) as wire:
        with pytest.raises(BackendFailed):
            await wire[0].open_socket(wire[1], ASKED, (), 1024)
        names = {line.partition(":")[0].lower() for line in engine.exchanges[0].head.split("\r\n")[1:]}
        assert names == {"host", "x-own", "upgrade", "connection", "sec-websocket-version", "sec-websocket-key"}


async def test_nobody_there_has_taken_nothing() -> None:
    async with opened("http://127.0.0.1:9") as (transport, backend):
        with pytest.raises(NotTaken):
            await transport.open_socket(backend, ASKED, (), 1024)
