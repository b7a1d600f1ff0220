"""Request bodies: whole, piece by piece, and the proof of how far they got."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from gateway.errors import BackendUnreachable, BodyTooLarge, NotTaken
from gateway.record import RequestHead
from gateway.types import RequestId
from gateway.upstream.registry import Backend
from gateway.upstream.transport.exchange import Transport
from gateway.upstream.transport.response import EngineResponse
from tests.ports import free_port
from tests.upstream.scripted import Exchange, ScriptedEngine, answering, json_response, until
from tests.upstream.transport.wire import JSON, LARGE_BYTES, opened, post, whole


async def test_large_bodies_arrive_whole_from_many_views() -> None:
    body = bytes(range(256)) * (LARGE_BYTES // 256)
    view = memoryview(body)
    cuts = [0, 5, 70_000, 5_000_000, 5_000_001, LARGE_BYTES]
    chunks = [view[start:stop] for start, stop in itertools.pairwise(cuts)]
    async with ScriptedEngine(answering(json_response(b"{}"))) as engine, opened(engine.url) as (transport, backend):
        await whole(await transport.forward(backend, post(*chunks)))
        assert engine.exchanges[0].body == body
    for chunk in chunks:
        chunk.release()  # raises BufferError if anything still holds on to it


async def test_a_body_that_was_not_fully_sent_was_not_taken() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.reader.readexactly(100_000)
        exchange.reset()

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        chunk = memoryview(bytes(LARGE_BYTES))
        with pytest.raises(NotTaken) as caught:
            await transport.forward(backend, post(chunk))
        assert caught.value.reason == "body_not_sent"
        chunk.release()


async def test_a_backend_that_stops_reading_has_not_taken_the_body() -> None:
    judged = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await judged.wait()
        await exchange.left()
        exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url, response_timeout_s=0.3) as (transport, backend):
        chunk = memoryview(bytes(LARGE_BYTES))
        with pytest.raises(NotTaken) as caught:
            await transport.forward(backend, post(chunk))
        assert caught.value.reason == "body_not_sent"
        chunk.release()
        judged.set()
        await until(lambda: engine.closed_connections == 1)


@pytest.mark.parametrize("body_bytes", [2, LARGE_BYTES])
async def test_cancelling_is_seen_by_the_engine_whatever_is_unsent(body_bytes: int) -> None:
    arrived = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        if body_bytes == 2:
            await exchange.read_body()
        else:
            await exchange.reader.readexactly(1000)
        arrived.set()
        await exchange.left()
        exchange.writer.close()

    chunk = memoryview(bytes(body_bytes))
    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        sending = asyncio.create_task(transport.forward(backend, post(chunk)))
        await arrived.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        chunk.release()
        await until(lambda: engine.closed_connections == 1)


async def test_an_early_answer_is_given_while_the_body_is_unsent() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.send(json_response(b'{"error":{}}', "413 Payload Too Large"))
        await exchange.left()
        exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        chunk = memoryview(bytes(LARGE_BYTES))
        response = await transport.forward(backend, post(chunk))
        assert response.status == 413
        assert await response.chunk() == b'{"error":{}}'
        response.close()
        chunk.release()
        await until(lambda: engine.closed_connections == 1)


class ChunkedClient:
    """The client's side of a pass-through: gives these pieces, raises what is among them."""

    def __init__(self, pieces: Sequence[bytes | Exception], content_length: int | None) -> None:
        self._pieces = list(pieces)
        self.head = RequestHead("POST", "/v1/embeddings", "", JSON, content_length, RequestId("r"))

    async def chunk(self) -> bytes:
        await asyncio.sleep(0)
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece


async def stream(
    transport: Transport, backend: Backend, client: ChunkedClient, limit_bytes: int = 1000
) -> EngineResponse:
    return await transport.stream(backend, post(), client, limit_bytes)  # type: ignore[arg-type]


@pytest.mark.parametrize("content_length", [10, None])
async def test_a_body_is_relayed_with_the_framing_that_is_known(content_length: int | None) -> None:
    async with ScriptedEngine(answering(json_response(b"{}"))) as engine, opened(engine.url) as (transport, backend):
        client = ChunkedClient([b"hello", b"world"], content_length)
        assert await whole(await stream(transport, backend, client)) == b"{}"
        exchange = engine.exchanges[0]
        assert exchange.body == b"helloworld"
        assert exchange.headers("content-length") == ([] if content_length is None else ["10"])


async def test_the_clients_failure_is_the_clients() -> None:
    class ClientLeft(Exception):
        pass

    async with ScriptedEngine(answering(json_response(b"{}"))) as engine, opened(engine.url) as (transport, backend):
        with pytest.raises(ClientLeft):
            await stream(transport, backend, ChunkedClient([b"hello", ClientLeft()], 10))
        with pytest.raises(BodyTooLarge):
            await stream(transport, backend, ChunkedClient([b"x" * 600, b"y" * 600], None))
        await until(lambda: engine.closed_connections == 2)


async def test_what_was_begun_from_the_client_cannot_go_elsewhere() -> None:
    async def script(exchange: Exchange) -> None:
        exchange.reset()

    async with opened(f"http://127.0.0.1:{free_port()}") as (transport, backend):
        with pytest.raises(NotTaken):
            await stream(transport, backend, ChunkedClient([b"hello"], 5))
    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        with pytest.raises(BackendUnreachable):
            await stream(transport, backend, ChunkedClient([b"x" * 100_000] * 300, None), 1 << 30)


async def test_a_slow_client_is_not_the_backends_fault() -> None:
    class SlowClient(ChunkedClient):
        async def chunk(self) -> bytes:
            await asyncio.sleep(0.6)
            return await super().chunk()

    async with (
        ScriptedEngine(answering(json_response(b"{}"))) as engine,
        opened(engine.url, response_timeout_s=0.5) as (
            transport,
            backend,
        ),
    ):
        assert await whole(await stream(transport, backend, SlowClient([b"hello"], 5))) == b"{}"
