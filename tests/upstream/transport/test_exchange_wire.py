"""What stands on the wire: nothing added, nothing lost, nothing decoded."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import partial

import pytest

from tests.upstream.scripted import Exchange, ScriptedEngine, answering, json_response, until
from tests.upstream.transport.wire import JSON, opened, post, whole


async def test_nothing_is_added_and_framing_is_ours() -> None:
    async with ScriptedEngine(answering(json_response(b"{}"))) as engine, opened(engine.url) as (transport, backend):
        received = [
            ("content-type", "application/json"),
            ("Host", "gateway.example.test"),
            ("Content-Length", "999"),
            ("Transfer-Encoding", "chunked"),
            ("X-Two", "1"),
            ("X-Two", "2"),
        ]
        assert await whole(await transport.forward(backend, post(b'{"a":', b"1}", headers=received))) == b"{}"
        exchange = engine.exchanges[0]
        assert exchange.body == b'{"a":1}'
        names = sorted(line.split(":")[0].lower() for line in exchange.head.split("\r\n")[1:])
        assert names == ["content-length", "content-type", "endpoint-load-metrics-format", "host", "x-two", "x-two"]
        assert exchange.headers("host") == [f"127.0.0.1:{engine.port}"]
        assert exchange.headers("content-length") == ["7"]
        assert exchange.headers("x-two") == ["1", "2"]


async def test_the_request_target_is_sent_as_it_was_received() -> None:
    async with ScriptedEngine(answering(json_response(b"{}"))) as engine, opened(engine.url) as (transport, backend):
        for path, query in (("/v1/models/a%2Fb%20c", "x=%7e&x=+&&y"), ("/v1/../a", "")):
            await whole(await transport.forward(backend, post(path=path, query=query, method="GET")))
        assert engine.targets == ["/v1/models/a%2Fb%20c?x=%7e&x=+&&y", "/v1/../a"]


async def test_a_root_with_a_path_and_a_v1_is_understood() -> None:
    async with ScriptedEngine(answering(json_response(b"{}"))) as engine:
        async with opened(f"{engine.url}/engines/a/v1/") as (transport, backend):
            await whole(await transport.forward(backend, post(b"{}")))
        assert engine.targets == ["/engines/a/v1/chat/completions"]


async def test_event_streams_come_through_as_they_were_cut() -> None:
    pieces = [b'data: {"a":"\xe2\x82', b'\xac"}\n', b"\ndata: [DONE]\n\n"]
    received: list[bytes] = []

    def relayed(count: int) -> bool:
        return len(received) == count

    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
            b"Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n"
        )
        for sent, piece in enumerate(pieces):
            await until(partial(relayed, sent))
            await exchange.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        await exchange.send(b"0\r\n\r\n")

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        response = await transport.forward(backend, post(b"{}"))
        assert response.status == 200
        assert response.content_length is None
        assert [value for name, value in response.headers if name.lower() == "set-cookie"] == ["a=1", "b=2"]
        assert {name.lower() for name, _ in response.headers} == {"content-type", "set-cookie"}
        while chunk := await response.chunk():
            received.append(chunk)
        assert received == pieces


async def test_a_coded_body_is_not_decoded() -> None:
    coded = gzip.compress(b'{"a":1}')
    response = json_response(coded, extra="Content-Encoding: gzip\r\n")
    async with ScriptedEngine(answering(response)) as engine, opened(engine.url) as (transport, backend):
        answer = await transport.forward(backend, post(b"{}", headers=[*JSON, ("Accept-Encoding", "gzip")]))
        assert ("Content-Encoding", "gzip") in answer.headers
        assert answer.content_length == len(coded)
        assert await whole(answer) == coded
        assert engine.exchanges[0].headers("accept-encoding") == ["gzip"]


async def test_a_body_that_ends_with_the_connection_is_whole() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.read_body()
        await exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
        exchange.writer.close()

    async with ScriptedEngine(script) as engine, opened(engine.url) as (transport, backend):
        assert await whole(await transport.forward(backend, post(b"{}"))) == b"hello"


async def test_redirects_and_cookies_are_the_clients_business() -> None:
    moved = json_response(b"{}", "307 Temporary Redirect", "Location: /elsewhere\r\nSet-Cookie: a=1; Path=/\r\n")
    async with ScriptedEngine(answering(moved)) as engine, opened(engine.url) as (transport, backend):
        for _ in range(2):
            response = await transport.forward(backend, post(b"{}"))
            assert response.status == 307
            await whole(response)
        assert len(engine.exchanges) == 2
        assert engine.exchanges[1].headers("cookie") == []


@pytest.mark.parametrize(
    ("api_key", "forward", "expected"),
    [
        (None, False, []),
        (None, True, ["Bearer client"]),
        ("engine", False, ["Bearer engine"]),
        ("engine", True, ["Bearer engine"]),
    ],
)
async def test_the_engine_gets_its_own_key_or_the_clients_if_told(
    api_key: str | None, forward: bool, expected: list[str]
) -> None:
    async with (
        ScriptedEngine(answering(json_response(b"{}"))) as engine,
        opened(engine.url, api_key=api_key, forward_authorization=forward) as (transport, backend),
    ):
        headers = [*JSON, ("Authorization", "Bearer client"), ("X-Vllm-Priority", "-9")]
        response = await transport.forward(backend, post(b"{}", headers=headers))
        assert response.stripped_headers == 1
        await whole(response)
        assert engine.exchanges[0].headers("authorization") == expected
        assert engine.exchanges[0].headers("x-vllm-priority") == []


@pytest.mark.parametrize(("router", "name"), [("sglang-router", "x-smg-routing-key"), ("vllm-router", "x-session-id")])
async def test_a_router_gets_our_routing_key_and_an_engine_none(router: str, name: str) -> None:
    request = replace(post(b"{}", headers=(*JSON, (name, "the client's"))), affinity_key="ab" * 16)
    async with ScriptedEngine(answering(json_response(b"{}"))) as engine:
        for lent in (router, None):
            async with opened(engine.url, lend_affinity=lent) as (transport, backend):
                await whole(await transport.forward(backend, request))
        assert [exchange.headers(name) for exchange in engine.exchanges] == [["ab" * 16], []]
