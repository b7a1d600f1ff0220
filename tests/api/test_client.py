"""One client's side: answered once, streamed with back-pressure, and never told that half an answer is a whole one."""

from __future__ import annotations

import asyncio
import json

import pytest

from gateway.api.client import COMMENT, HttpClient
from gateway.errors import BackendLost, GatewayBug, Spelling, TooManyImages, UnsupportedFormat
from tests.api.harness import DEADLINE_S, Journey, post, serving

EVENT_STREAM = (("Content-Type", "text/event-stream"),)


async def until_left(client: HttpClient) -> None:
    while not client.left:  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.002)


def failing(headers: tuple[tuple[str, str], ...], *pieces: bytes, length: int | None = None) -> Journey:
    async def journey(client: HttpClient) -> None:
        (await client.read(1000)).close()
        await client.start(200, headers, length)
        for piece in pieces:
            await client.write(piece)
        await client.refuse(BackendLost(detail="10.0.0.7"))

    return journey


async def test_an_error_is_an_answer_of_its_own() -> None:
    async def journey(client: HttpClient) -> None:
        (await client.read(1000)).close()
        assert not client.started
        await client.refuse(TooManyImages("Six of five.", part="messages.0", rule="max_images", detail="private"))
        assert client.started

    async with serving(journey) as (_, wire):
        await wire.send(post(b"{}", "X-Request-Id: r7"))
        answer = await wire.answer()
        error = answer.json()["error"]
        assert (answer.status, error["code"], error["param"]) == (400, "too_many_images", "messages.0")
        assert "Six of five." in error["message"]
        assert answer.headers["x-vlmgw-error"] == "too_many_images"
        assert answer.headers["x-request-id"] == "r7"
        assert answer.headers["content-type"].startswith("application/json")
        assert b"private" not in answer.body
        await wire.send(post())
        assert (await wire.answer()).status == 400, "the connection lives on"


async def test_a_vendors_spelling_is_what_the_client_reads_and_ours_stands_in_the_header() -> None:
    async def journey(client: HttpClient) -> None:
        (await client.read(1000)).close()
        error = UnsupportedFormat()
        error.spelling = Spelling(400, "invalid_image_format")
        await client.refuse(error)

    async with serving(journey) as (_, wire):
        await wire.send(post(b"{}"))
        answer = await wire.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (400, "invalid_image_format")
        assert answer.headers["x-vlmgw-error"] == "image_format_unsupported"


async def test_between_events_an_error_is_the_last_event() -> None:
    async with serving(failing(EVENT_STREAM, b"data: 1\n\n")) as (_, wire):
        await wire.send(post())
        answer = await wire.answer()
        assert answer.body.startswith(b"data: 1\n\ndata: {")
        event = json.loads(answer.body.split(b"data: ")[2])
        assert event["error"]["code"] == "backend_lost"
        assert b"10.0.0.7" not in answer.body
        assert b"[DONE]" not in answer.body
        assert "close" not in answer.headers.get("connection", ""), "the head promised another turn"
        await wire.send(post())
        assert (await wire.answer()).status == 200


@pytest.mark.parametrize(
    ("headers", "pieces", "length"),
    [
        (EVENT_STREAM, (b"data: 1\n\n", b"data: {"), None),
        ((), (b"half",), 100),
        ((), (b"half",), None),
    ],
)
async def test_half_an_answer_is_cut(
    headers: tuple[tuple[str, str], ...], pieces: tuple[bytes, ...], length: int | None
) -> None:
    async with serving(failing(headers, *pieces, length=length)) as (_, wire):
        await wire.send(post())
        raw = await wire.rest()
        assert not raw.endswith(b"0\r\n\r\n")
        if length is not None:
            assert len(raw.partition(b"\r\n\r\n")[2]) < length


async def test_a_head_that_nobody_has_seen_gives_way_to_the_error() -> None:
    for length in (100, None):
        async with serving(failing((), length=length)) as (_, wire):
            for _ in range(2):
                await wire.send(post())
                answer = await wire.answer()
                assert (answer.status, answer.json()["error"]["code"]) == (502, "backend_lost")


async def test_what_was_never_finished_is_not_ended_by_the_server() -> None:
    async def journey(client: HttpClient) -> None:
        await client.start(200, (), None)
        await client.write(b"half")
        raise RuntimeError("unforeseen and uncaught")

    async with serving(journey) as (_, wire):
        await wire.send(post())
        assert not (await wire.rest()).endswith(b"0\r\n\r\n")


async def test_a_client_that_leaves_cancels_its_exchange_at_once() -> None:
    async def journey(client: HttpClient) -> None:
        await client.start(200, EVENT_STREAM, None)
        await client.write(b"data: 1\n\n")
        await asyncio.Event().wait()

    async with serving(journey) as (state, wire):
        await wire.send(post())
        await wire.head()
        wire.close()
        async with asyncio.timeout(DEADLINE_S):
            while not state.ended:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.002)
        assert isinstance(state.ended[0], asyncio.CancelledError)


async def test_a_slow_reader_holds_the_writer_back() -> None:
    piece = bytes(256 * 1024)
    written = 0

    async def journey(client: HttpClient) -> None:
        nonlocal written
        await client.start(200, (), None)
        for _ in range(400):
            await client.write(piece)
            written += len(piece)
        await client.finish()

    async with serving(journey) as (_, wire):
        await wire.send(post())
        await wire.head()
        seen = -1
        while seen != written or not written:  # until it stands still
            seen = written
            await asyncio.sleep(0.1)
        # Kernel buffers of both ends and asyncio's own water mark, far below the 100 MiB that wait.
        assert written < 32 << 20
        async with asyncio.timeout(60):
            while not (await wire.reader.read(1 << 20)).endswith(b"0\r\n\r\n"):
                pass
        assert written == 400 * len(piece)


def beating(every_s: float, headers: tuple[tuple[str, str], ...], enough: asyncio.Event, status: int = 200) -> Journey:
    """Comments begin at once; the answer comes when the test says so."""

    async def journey(client: HttpClient) -> None:
        (await client.read(1000)).close()
        client.keep_alive(every_s)
        await enough.wait()
        await client.start(status, headers, None)
        await client.write(b"data: 1\n\n")
        await client.finish()

    return journey


async def test_comments_come_while_nothing_else_does_and_end_with_the_answer() -> None:
    enough = asyncio.Event()
    async with serving(beating(0.01, EVENT_STREAM, enough)) as (_, wire):
        await wire.send(post())
        assert "text/event-stream" in await wire.head()
        async with asyncio.timeout(DEADLINE_S):
            assert b"".join([await wire.reader.readexactly(len(COMMENT) + 5) for _ in range(2)]).count(COMMENT) == 2
            enough.set()
            rest = await wire.reader.readuntil(b"0\r\n\r\n")
        assert b"data: 1\n\n" in rest
        await wire.send(post())
        assert (await wire.answer()).body.endswith(b"data: 1\n\n")


async def test_an_answer_before_the_first_comment_keeps_its_own_head() -> None:
    enough = asyncio.Event()
    enough.set()
    async with serving(beating(3600.0, (("Content-Type", "application/json"),), enough, 400)) as (_, wire):
        await wire.send(post())
        assert (await wire.answer()).status == 400


async def test_a_comment_never_stands_inside_an_event_or_another_kind_of_answer() -> None:
    for headers, pieces in ((EVENT_STREAM, (b"data: ha", b"lf\n\n")), ((("Content-Type", "a/b"),), (b"ha", b"lf"))):
        go_on = asyncio.Event()

        async def journey(client: HttpClient, headers=headers, pieces=pieces, go_on=go_on) -> None:  # type: ignore[no-untyped-def]
            client.keep_alive(0.01)
            await client.start(200, headers, None)
            await client.write(pieces[0])
            await go_on.wait()
            await client.write(pieces[1])
            await client.finish()

        async with serving(journey) as (_, wire):
            await wire.send(post())
            await wire.head()
            await asyncio.sleep(0.05)  # several beats
            go_on.set()
            async with asyncio.timeout(DEADLINE_S):
                body = await wire.reader.readuntil(b"0\r\n\r\n")
            assert COMMENT not in body.partition(b"lf")[0]


async def test_comments_to_a_client_that_left_end_quietly() -> None:
    async def journey(client: HttpClient) -> None:
        client.keep_alive(0.005)
        await until_left(client)
        await asyncio.sleep(0.05)

    async with serving(journey) as (state, wire):
        await wire.send(post())
        await wire.head()
        wire.close()
        async with asyncio.timeout(DEADLINE_S):
            while not state.ended:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.002)


async def test_a_bug_says_nothing_of_itself() -> None:
    async def journey(client: HttpClient) -> None:
        await client.refuse(GatewayBug(detail="KeyError: secret"))

    async with serving(journey) as (_, wire):
        await wire.send(post())
        answer = await wire.answer()
        assert answer.status == 500
        assert "secret" not in answer.head + answer.body.decode()


async def test_streamed_bodies_are_invited() -> None:
    async with serving() as (_, wire):
        await wire.send(post(b"", "Expect: 100-continue", "Content-Length: 3", path="/v1/embeddings", length=False))
        assert await wire.head() == "HTTP/1.1 100 Continue"
        await wire.send(b"abc")
        assert (await wire.answer()).body == b"abc"


async def test_a_streamed_body_may_not_be_silent_for_ever() -> None:
    async with serving(body_silence_s=0.05) as (_, wire):
        await wire.send(post(b"a", "Content-Length: 3", path="/v1/embeddings", length=False))
        assert (await wire.answer()).status == 400
