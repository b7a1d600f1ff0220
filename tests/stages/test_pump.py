"""The pump: every byte goes on as it came, the end of what the backend sent is remembered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.dialects.openai_chat import OpenAIChat
from gateway.record import ExchangeRecord, RequestHead
from gateway.stages.answer import AnswerEditor, Wish
from gateway.stages.pump import USAGE_TAIL_BYTES, pump
from gateway.types import RequestId
from tests.journey.books import Books
from tests.journey.driver import drive
from tests.journey.fakes import FakeClient, FakeClock, FakeResponse


def pumped(
    pieces: list[bytes], editor: AnswerEditor | None = None, answered: Callable[[], None] = lambda: None
) -> tuple[FakeClient, ExchangeRecord, bytes]:
    """What the client got, what was recorded, and the remembered tail."""
    books = Books()
    client = FakeClient(books, RequestHead("POST", "/", "", (), None, RequestId("r")), b"")
    client.started = True
    response = FakeResponse(books.hand_out("response"), 200, (), pieces)
    record, tails = ExchangeRecord(RequestId("r"), "d", "/", 0.0), []

    async def work() -> None:
        tails.append(await pump(client, response, [] if editor is None else [editor], record, FakeClock(), answered))

    assert drive(work()).escaped is None
    return client, record, tails[0]


@pytest.mark.parametrize("size", [1, 1_000, USAGE_TAIL_BYTES, 3 * USAGE_TAIL_BYTES])
def test_bytes_go_on_and_the_tail_stays(size: int) -> None:
    pieces = [bytes([65 + index]) * size for index in range(5)]
    client, record, tail = pumped(pieces)
    assert client.written == b"".join(pieces)
    assert client.finished == 1
    assert b"".join(pieces).endswith(tail)
    assert len(tail) >= min(USAGE_TAIL_BYTES, 5 * size)
    assert record.response_bytes == 5 * size
    assert record.first_chunk_s is not None


def test_the_first_bytes_end_the_prefill_once() -> None:
    heard: list[None] = []
    pumped([b"1", b"2"], answered=lambda: heard.append(None))
    assert len(heard) == 1
    pumped([], answered=lambda: heard.append(None))
    assert len(heard) == 1


def test_an_editor_stands_between_and_the_tail_is_the_backends_own() -> None:
    body = b'{"choices": []}'
    editor = AnswerEditor(Wish(None, b"1"), OpenAIChat(), streamed=False)
    client, _, tail = pumped([body[:5], body[5:]], editor)
    assert tail == body
    assert client.written == b'{"choices": [],"vlmgw":1}'
