"""Bytes that are no request, and what nobody caught: our envelope, and nothing of theirs in it or in the log."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gateway.api.client import HttpClient
from gateway.api.connection import Connection
from tests.api.harness import Wire, post, serving
from tests.upstream.scripted import until

KEY = b"Authorization: Bearer sk-very-private"
UNREADABLE = {
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another version": b"GET /health HTTP/2.0\r\nHost: sk-very-private\r\n\r\n",
    "an old version, a body": b"POST /health HTTP/0.9\r\nContent-Length: 3\r\n\r\nabc",
    "no method": b"sk-very-private\r\n\r\n",
    "many headers": b"GET /health HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n",
    "bytes in the path": b"GET /sk-very-private\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "space before the colon": b"GET /health HTTP/1.1\r\nAuthorization : sk-very-private\r\n\r\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_what_is_no_request_is_refused_in_our_words(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with serving() as (state, wire):
            await wire.send(UNREADABLE[name])
            answer = await wire.answer()
            assert (answer.status, answer.json()["error"]["code"]) == (400, "malformed")
            assert len(answer.headers["x-request-id"]) == 32
            assert "private" not in answer.head + answer.body.decode()
            assert await wire.rest() == b""
            assert state.heads == []
            other = await Wire.to(state.port)
            await other.send(post(b"still here"))
            assert (await other.answer()).body == b"still here"
            other.close()
    assert "private" not in caplog.text


@pytest.mark.parametrize("begun", [b"", b"3\r\nabc\r\n"])
async def test_a_body_whose_framing_breaks_is_refused_at_once_and_once(begun: bytes) -> None:
    """Not when the body's time limit is over, and not again as a request of its own."""
    async with serving() as (state, wire):
        await wire.send(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + begun)
        await until(lambda: bool(state.heads))
        await wire.send(b"ZZ\r\n{}\r\n0\r\n\r\n")
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (400, "malformed")
        assert answer.headers["connection"] == "close"
        assert await wire.rest() == b""


async def test_an_answer_before_the_bodys_end_waits_for_the_rest_of_it() -> None:
    """Its client still sends; a connection that is closed at once may be reset before the answer is read. Who read the
    body has been cancelled this moment, as the upload to a backend is that answers early."""
    clients: list[HttpClient] = []

    async def early(client: HttpClient) -> None:
        clients.append(client)
        await client.chunk()
        reading = asyncio.create_task(client.chunk())
        await asyncio.sleep(0)
        reading.cancel()
        await client.start(413, (), 3)
        await client.write(b"big")
        await client.finish()

    async with serving(early) as (state, wire):
        await wire.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + b"x" * 60)
        answer = await wire.answer()
        assert (answer.status, answer.body, answer.headers["connection"]) == (413, b"big", "close")
        await until(lambda: bool(state.ended))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not clients[0].left
        await wire.send(b"x" * 40)
        assert await wire.rest() == b""


async def test_what_follows_a_whole_request_and_is_none_is_a_refusal_of_its_own() -> None:
    async with serving() as (_, wire):
        await wire.send(post(b"whole"))
        assert (await wire.answer()).body == b"whole"
        await wire.send(b"no request\r\n\r\n")
        assert (await wire.answer()).status == 400
        assert await wire.rest() == b""


async def test_a_header_that_is_too_long_is_told_apart_and_not_quoted(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as (state, wire):
        await wire.send(b"GET /health HTTP/1.1\r\n" + KEY * 300 + b"\r\n\r\n")
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (431, "header_too_large")
        assert "private" not in answer.head + answer.body.decode() + caplog.text
        assert await wire.rest() == b""
        assert state.heads == []


async def test_what_nobody_caught_is_a_bug_without_its_words_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(client: HttpClient) -> None:
        raise LookupError("10.0.0.7")

    async with serving(broken) as (_, wire):
        await wire.send(post(b""))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (500, "gateway_bug")
        assert b"10.0.0.7" not in answer.body
    assert "LookupError" in caplog.text


async def test_what_follows_a_body_that_was_held_back_is_answered_too() -> None:
    """The body is larger than what aiohttp keeps unread, so its parser stops in the middle of what it was given."""
    body = b"x" * 200_000
    async with serving() as (state, wire):
        await wire.send(post(body) + post(b"second") + post(body) + post(b"fourth"))
        assert [(await wire.answer()).body for _ in range(4)] == [body, b"second", body, b"fourth"]
        assert len(state.heads) == 4


async def test_the_parser_is_not_run_over_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[int] = []
    hear = Connection.data_received

    def heard(connection: Connection, data: bytes) -> None:
        received.append(len(data))
        hear(connection, data)

    monkeypatch.setattr(Connection, "data_received", heard)
    async with serving() as (_, wire):
        await wire.send(post(b"small"))
        assert (await wire.answer()).body == b"small"
    assert 0 not in received
