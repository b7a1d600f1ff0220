"""Heads leave as they came: without types of our own, with bytes that are no UTF-8."""

from __future__ import annotations

import pytest

from gateway.api.client import HttpClient
from gateway.api.relayed import is_text
from tests.api.harness import Journey, post, serving


def _answering(*headers: tuple[str, str], length: int | None = 2) -> Journey:
    async def journey(client: HttpClient) -> None:
        await client.read(1 << 20)
        await client.start(200, headers, length)
        await client.write(b"hi")
        await client.finish()

    return journey


async def test_what_has_no_type_gets_none() -> None:
    async with serving(_answering(("X-Own", "1"))) as (_, wire):
        await wire.send(post())
        answer = await wire.answer()
    assert "content-type" not in answer.headers
    assert answer.body == b"hi"


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain"])
async def test_bytes_that_are_no_utf8_leave_as_they_came(kind: str) -> None:
    value = b"b\xe4r \xf0\x9f\x98\x80".decode("utf-8", "surrogateescape")
    async with serving(_answering(("Content-Type", kind), ("X-Latin", value), length=None)) as (_, wire):
        await wire.send(post())
        answer = await wire.answer()
    assert answer.headers["x-latin"].encode("latin-1") == b"b\xe4r \xf0\x9f\x98\x80"
    assert answer.body == b"hi"


async def test_a_request_header_that_could_not_be_sent_on_is_refused() -> None:
    async with serving() as (state, wire):
        await wire.send(post(b"{}", "X-Latin: b\xe4r"))
        answer = await wire.answer()
    assert answer.status == 400
    assert state.heads == []


def test_text_is_what_was_utf8() -> None:
    assert is_text(["plain", "München"])
    assert not is_text(["plain", "b\udce4r"])
