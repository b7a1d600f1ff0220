"""What each way of failing proves, and that nothing is ever sent twice."""

from __future__ import annotations

import pytest

from gateway.errors import BackendLost, BackendTimeout, NotTaken
from gateway.types import EngineKind
from gateway.upstream.transport.response import EngineResponse
from tests.ports import free_port
from tests.upstream.scripted import Exchange, Script, ScriptedEngine, answering, json_response, until
from tests.upstream.transport.wire import opened, post, whole

BUSY = (
    b'{"error":{"message":"The engine is currently busy and cannot accept new requests. Please try again later or on a '
    b'different instance.","type":"Service Unavailable","param":null,"code":503}}'
)
DRAINS = b'{"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","code":500}}'


async def test_a_refused_connection_takes_nothing() -> None:
    async with opened(f"http://127.0.0.1:{free_port()}") as (transport, backend):
        for request in (post(b"{}"), post(method="GET")):
            with pytest.raises(NotTaken) as caught:
                await transport.forward(backend, request)
            assert caught.value.reason == "connect"
            assert caught.value.response is None


async def vanish(exchange: Exchange) -> None:
    await exchange.read_body()
    exchange.reset()


async def close_politely(exchange: Exchange) -> None:
    await exchange.read_body()
    exchange.writer.close()


async def talk_nonsense(exchange: Exchange) -> None:
    await exchange.read_body()
    await exchange.send(b"SSH-2.0-OpenSSH_9.2\r\n")
    await exchange.left()


async def answer_with_no_status(exchange: Exchange) -> None:
    await exchange.read_body()
    await exchange.send(b"HTTP/1.1 040 OK\r\nContent-Length: 2\r\n\r\nab")
    await exchange.left()


async def switch_unasked(exchange: Exchange) -> None:
    await exchange.read_body()
    await exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nab")
    await exchange.left()


@pytest.mark.parametrize("script", [vanish, close_politely, talk_nonsense, answer_with_no_status, switch_unasked])
@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
@pytest.mark.parametrize("warm", [False, True])
async def test_after_the_body_the_request_may_have_run_and_is_sent_once(
    script: Script, method: str, warm: bool
) -> None:
    async with (
        ScriptedEngine(script, scripts=[answering(json_response(b"{}"))] * warm) as engine,
        opened(engine.url) as (transport, backend),
    ):
        if warm:
            await whole(await transport.forward(backend, post(b"{}")))
        body = () if method == "GET" else (b"{}",)
        with pytest.raises(BackendLost):
            await transport.forward(backend, post(*body, method=method))
        assert len(engine.exchanges) == 1 + warm


async def test_silence_after_the_body_is_a_timeout_and_cuts_the_connection() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.left()
        exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url, response_timeout_s=0.2) as (transport, backend):
        for request in (post(b"{}"), post(method="GET")):
            with pytest.raises(BackendTimeout):
                await transport.forward(backend, request)
        await until(lambda: engine.closed_connections == 2)
        assert len(engine.exchanges) == 2


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [("503 Service Unavailable", BUSY, "refused"), ("500 Internal Server Error", DRAINS, "draining")],
)
async def test_a_documented_refusal_may_go_elsewhere_and_can_be_relayed_all_the_same(
    status: str, body: bytes, reason: str
) -> None:
    async with (
        ScriptedEngine(answering(json_response(body, status, "X-Kept: 1\r\n"))) as engine,
        opened(engine.url) as (transport, backend),
    ):
        with pytest.raises(NotTaken) as caught:
            await transport.forward(backend, post(b"{}"))
        assert caught.value.reason == reason
        response = caught.value.response
        assert isinstance(response, EngineResponse)
        assert ("X-Kept", "1") in response.headers
        assert response.content_length == len(body)
        assert await whole(response) == body


@pytest.mark.parametrize(
    ("engine_kind", "body"),
    [(EngineKind.VLLM, b'{"error":"oops"}'), (EngineKind.GENERIC, BUSY), (EngineKind.VLLM, b"x" * 200_000)],
)
async def test_any_other_error_is_relayed_byte_for_byte(engine_kind: EngineKind, body: bytes) -> None:
    async with (
        ScriptedEngine(answering(json_response(body, "503 Service Unavailable"))) as engine,
        opened(engine.url, engine=engine_kind) as (transport, backend),
    ):
        response = await transport.forward(backend, post(b"{}"))
        assert response.status == 503
        assert await whole(response) == body
