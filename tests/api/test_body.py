"""Bodies: refused unread where the head decides, small ones on the heap, large ones in shared memory, all whole."""

from __future__ import annotations

import asyncio

import pytest

from gateway.api.body import SMALL_BODY_BYTES
from gateway.api.client import HttpClient
from gateway.media.shm import HeapBody, Slab, SlabBody
from tests.api.harness import Journey, Wire, post, serving

LIMIT_BYTES = 3 << 20


def reading(kinds: list[type], limit_bytes: int = LIMIT_BYTES) -> Journey:
    """Answer with the body; remember where it was kept."""

    async def journey(client: HttpClient) -> None:
        body = await client.read(limit_bytes)
        try:
            kinds.append(type(body))
            await client.start(200, (), body.stop - body.start)
            await client.write(bytes(body.view(body.start, body.stop)))
            await client.finish()
        finally:
            body.close()

    return journey


def pattern(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def chunked(body: bytes, piece: int) -> bytes:
    out = b""
    for start in range(0, len(body), piece):
        part = body[start : start + piece]
        out += f"{len(part):x}\r\n".encode() + part + b"\r\n"
    return out + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        (0, HeapBody),
        (10, HeapBody),
        (SMALL_BODY_BYTES, HeapBody),
        (SMALL_BODY_BYTES + 1, SlabBody),
        (LIMIT_BYTES, SlabBody),
    ],
)
async def test_a_body_arrives_whole_wherever_it_is_kept(size: int, kind: type) -> None:
    kinds: list[type] = []
    async with serving(reading(kinds)) as (_, wire):
        await wire.send(post(pattern(size)))
        assert (await wire.answer()).body == pattern(size)
    assert kinds == [kind]


@pytest.mark.parametrize(("size", "kind"), [(5, HeapBody), (SMALL_BODY_BYTES, HeapBody), (2_900_000, SlabBody)])
async def test_a_chunked_body_grows_into_shared_memory(size: int, kind: type) -> None:
    kinds: list[type] = []
    async with serving(reading(kinds)) as (_, wire):
        await wire.send(post(chunked(pattern(size), 100_000), "Transfer-Encoding: chunked", length=False))
        assert (await wire.answer()).body == pattern(size)
    assert kinds == [kind]


async def test_a_body_declared_too_large_is_refused_before_a_byte_of_it() -> None:
    async with serving(reading([])) as (_, wire):
        await wire.send(post(b"", f"Content-Length: {LIMIT_BYTES + 1}", length=False))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (413, "body_too_large")
        assert str(LIMIT_BYTES) in answer.json()["error"]["message"]
        assert answer.headers["connection"] == "close"


async def test_a_chunked_body_that_becomes_too_large_is_refused_on_the_way() -> None:
    async with serving(reading([], 300_000)) as (_, wire):
        await wire.send(post(b"", "Transfer-Encoding: chunked", length=False))
        piece = b"20000\r\n" + bytes(0x20000) + b"\r\n"
        for _ in range(3):
            await wire.send(piece)
        assert (await wire.answer()).status == 413


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", "anything"])
async def test_coded_bodies_are_refused_unread(coding: str) -> None:
    async with serving(reading([])) as (_, wire):
        await wire.send(post(b"", f"Content-Encoding: {coding}", "Content-Length: 1000", length=False))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (415, "unsupported_content_encoding")
        assert answer.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("coding", ["identity", " Identity ", ""])
async def test_identity_is_no_coding(coding: str) -> None:
    async with serving(reading([])) as (_, wire):
        await wire.send(post(b"x", f"Content-Encoding: {coding}"))
        assert (await wire.answer()).status == 200


@pytest.mark.parametrize("coding", ["gzip, chunked", "identity, chunked"])
async def test_transfer_codings_that_nobody_undoes_are_refused(coding: str) -> None:
    async with serving(reading([])) as (_, wire):
        await wire.send(post(b"1\r\nx\r\n0\r\n\r\n", f"Transfer-Encoding: {coding}", length=False))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (400, "malformed")


async def test_chunked_is_understood_however_it_is_spelt() -> None:
    async with serving(reading([])) as (_, wire):
        await wire.send(post(b"1\r\nx\r\n0\r\n\r\n", "Transfer-Encoding: Chunked", length=False))
        assert (await wire.answer()).body == b"x"


async def test_expect_100_invites_the_body_and_only_one_that_is_wanted() -> None:
    async with serving(reading([])) as (_, wire):
        await wire.send(post(b"", "Expect: 100-continue", "Content-Length: 3", length=False))
        assert await wire.head() == "HTTP/1.1 100 Continue"
        await wire.send(b"abc")
        assert (await wire.answer()).body == b"abc"
        await wire.send(post(b"", "Expect: 100-continue", f"Content-Length: {LIMIT_BYTES + 1}", length=False))
        assert (await wire.answer()).status == 413


async def test_http_1_0_is_not_answered_100() -> None:
    async with serving(reading([])) as (_, wire):
        request = post(b"abc", "Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")
        await wire.send(request)
        assert (await wire.answer()).status == 200


async def test_broken_chunks_are_malformed() -> None:
    async with serving(reading([])) as (state, wire):
        await wire.send(post(b"", "Transfer-Encoding: chunked", length=False))
        await wire.send(b"5\r\nhello\r\nZZ\r\n")
        answer = await wire.answer()
        assert answer.status == 400
        assert await wire.rest() == b""
        other = await Wire.to(state.port)
        await other.send(post(b"still here"))
        assert (await other.answer()).body == b"still here"
        other.close()


@pytest.mark.parametrize("head", [("Content-Length: 3", "Content-Length: 4"), ("Content-Length: x",)])
async def test_a_head_that_leaves_the_length_open_is_refused(head: tuple[str, ...]) -> None:
    async with serving(reading([])) as (state, wire):
        await wire.send(post(b"abc", *head, length=False))
        assert (await wire.answer()).status == 400
        assert state.heads == []
        assert await wire.rest() == b""


@pytest.mark.parametrize("begun", [b"", bytes(SMALL_BODY_BYTES)])
async def test_a_silent_client_is_not_waited_for_forever(begun: bytes) -> None:
    async with serving(reading([]), body_silence_s=0.05) as (_, wire):
        await wire.send(post(begun, f"Content-Length: {SMALL_BODY_BYTES * 2}", length=False))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (400, "malformed")


async def test_too_many_large_bodies_are_shed() -> None:
    async with serving(reading([]), slab=Slab(1 << 20)) as (_, wire):
        await wire.send(post(b"", "Content-Length: 2000000", length=False))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (503, "body_memory_exhausted")
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["connection"] == "close", "what was not read is not worth reading"


@pytest.mark.parametrize("size", [100_000, 2_000_000])
async def test_a_client_that_leaves_in_its_body_leaves_nothing(size: int) -> None:
    async with serving(reading([])) as (state, wire):
        await wire.send(post(bytes(size // 2), f"Content-Length: {size}", length=False))
        async with asyncio.timeout(30):
            while not state.heads:  # noqa: ASYNC110  # the server does not tell
                await asyncio.sleep(0.002)
        wire.close()
        async with asyncio.timeout(30):
            while not state.ended or state.slab.in_use_bytes:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        assert isinstance(state.ended[0], asyncio.CancelledError | ConnectionError)
