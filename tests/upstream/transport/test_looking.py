"""What is read ahead of a response, and what becomes of it."""

from __future__ import annotations

import asyncio

import pytest

from gateway.errors import BackendLost, NotTaken
from gateway.types import EngineKind
from gateway.upstream.transport.looking import WHOLE_BYTES, first_data
from tests.upstream.scripted import Exchange, Script, ScriptedEngine, answering, json_response, until
from tests.upstream.transport.wire import opened, post, whole

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"
FULL = b'data: {"error":{"object":"error","message":"The request queue is full.","code":503}}\n\n'
ABORTED = b'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"abort"}]}\n\n'
NATIVE_ABORT = b'data: {"text":"","output_ids":[],"meta_info":{"finish_reason":{"type":"abort"}}}\n\n'
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
TOO_LONG = b'data: {"error":{"message":"Request running timeout reached.","code":503}}\n\n'


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def streaming(*pieces: bytes) -> Script:
    return answering(STREAM + chunked(*pieces) + b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("event", "reason"),
    [(FULL, "refused"), (ABORTED, "aborted"), (NATIVE_ABORT, "aborted"), (b": hi\n\n" + FULL, "refused")],
)
async def test_a_refusal_inside_a_stream_is_not_taken(event: bytes, reason: str) -> None:
    async with (
        ScriptedEngine(streaming(event, DONE)) as engine,
        opened(engine.url, engine=EngineKind.SGLANG) as (transport, backend),
    ):
        with pytest.raises(NotTaken) as caught:
            await transport.forward(backend, post(b"{}"))
        assert (caught.value.reason, caught.value.response) == (reason, None)
        assert len(backend.wires) == 0


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        (EngineKind.SGLANG, (TOKEN, FULL, DONE)),
        (EngineKind.SGLANG, (TOO_LONG, DONE)),
        (EngineKind.SGLANG, (b"data: no JSON\n\n", DONE)),
        (EngineKind.SGLANG, (b'data: {"error":{"message":"broken","code":500}}\n\n', DONE)),
        (EngineKind.SGLANG, (b"x" * (65 * 1024), FULL)),
        (EngineKind.SGLANG, ()),
        (EngineKind.VLLM, (FULL, DONE)),
        (EngineKind.GENERIC, (ABORTED, DONE)),
    ],
)
async def test_everything_else_is_relayed_as_it_came(kind: EngineKind, events: tuple[bytes, ...]) -> None:
    async with ScriptedEngine(streaming(*events)) as engine, opened(engine.url, engine=kind) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        assert await whole(response) == b"".join(events)


async def test_of_other_engines_the_head_is_not_held_back() -> None:
    heard = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(STREAM)
        await heard.wait()
        await exchange.send(chunked(TOKEN) + b"0\r\n\r\n")

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        heard.set()
        assert await whole(response) == TOKEN


async def test_a_short_answer_is_whole_or_lost() -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        exchange.writer.close()

    async with ScriptedEngine(half) as engine, opened(engine.url) as (transport, backend):
        with pytest.raises(BackendLost):
            await transport.forward(backend, post(b"{}"))
        assert len(backend.wires) == 0
        await until(lambda: engine.closed_connections == 1)


async def test_a_long_answer_comes_as_it_comes() -> None:
    body = bytes(WHOLE_BYTES + 1)
    async with ScriptedEngine(answering(json_response(body))) as engine, opened(engine.url) as (transport, backend):
        assert await whole(await transport.forward(backend, post(b"{}"))) == body


@pytest.mark.parametrize(("text", "blamed"), [(b"EngineCore encountered an issue.", True), (b"bad picture", False)])
async def test_an_error_tells_whose_fault_it_is(text: bytes, blamed: bool) -> None:
    answer = answering(json_response(text, "500 Internal Server Error"))
    async with ScriptedEngine(answer) as engine, opened(engine.url) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        assert response.blamed is blamed
        assert await whole(response) == text


@pytest.mark.parametrize(
    ("head", "data"),
    [
        (b"", None),
        (b"data: a", None),
        (b"data: a\n\n", b"a"),
        (b": c\n\nid: 1\r\n\r\ndata: a\r\ndata:b\r\n\r\ndata: c\n\n", b"a\nb"),
        (b"data: a\r\r", b"a"),
    ],
)
def test_the_first_data(head: bytes, data: bytes | None) -> None:
    assert first_data(head) == data
