"""The judge of one answer knows right ones, documented errors, and everything that is neither."""

from __future__ import annotations

import json

import pytest

from tests.chaos.answers import Answer, Kind, Question, documented, flaw

WORDS = "words of a 1"
ERROR = {"error": {"message": "Lost.", "type": "service_unavailable_error", "code": "backend_lost"}}
RATE_ERROR = {"type": "error", "error": {"type": "rate_limit_error", "message": "Enough."}}


def answer(kind: Kind, body: object, status: int = 200, code: str | None = None, colour: str | None = None) -> Answer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {} if code is None else {"x-vlmgw-error": code}
    return Answer(Question("a", kind, WORDS, colour), 0.0, 1.0, status, headers, text)


def chat(text: str, end: str | None = "stop") -> dict[str, object]:
    return {"choices": [{"message": {"content": text}, "finish_reason": end}]}


def stream(*events: object, end: bool = True) -> bytes:
    told = [f"data: {json.dumps(each)}\n\n" for each in events] + ["data: [DONE]\n\n"] * end
    return "".join(told).encode()


def delta(text: str, end: str | None = None) -> dict[str, object]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": end}]}


MESSAGE_PARTS = (
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "words of "}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a 1"}},
)
MESSAGE_END = {"type": "message_stop"}


@pytest.mark.parametrize(
    "right",
    [
        answer(Kind.TEXT, chat(f"You wrote: {WORDS}")),
        answer(Kind.IMAGE, chat(f"900x700 (5 tokens, #285bc8). {WORDS}"), colour="#285ac8"),
        answer(Kind.MESSAGES, {"content": [{"text": WORDS}], "stop_reason": "end_turn"}),
        answer(Kind.STREAM, stream(delta("words of "), delta("a 1", "stop"))),
        answer(Kind.MESSAGES_STREAM, stream(*MESSAGE_PARTS, MESSAGE_END, end=False)),
    ],
)
def test_right_answers(right: Answer) -> None:
    assert flaw(right) is None
    assert right.succeeded
    assert right.code is None


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (answer(Kind.TEXT, ERROR, 502, "backend_lost"), "backend_lost"),
        (answer(Kind.MESSAGES, RATE_ERROR, 429, "exhausted"), "exhausted"),
        (answer(Kind.STREAM, stream(delta("words"), ERROR)), "backend_lost"),
        (answer(Kind.MESSAGES_STREAM, stream(MESSAGE_PARTS[0], RATE_ERROR, end=False)), "rate_limit_error"),
    ],
)
def test_one_documented_error(one: Answer, code: str) -> None:
    assert flaw(one) is None
    assert not one.succeeded
    assert one.code == code


@pytest.mark.parametrize(
    "wrong",
    [
        answer(Kind.TEXT, chat("You wrote: something else")),
        answer(Kind.TEXT, chat(WORDS, None)),
        answer(Kind.TEXT, b'{"choices": ['),
        answer(Kind.TEXT, {}),
        answer(Kind.IMAGE, chat(f"900x700 (5 tokens, #905ac8). {WORDS}"), colour="#285ac8"),
        answer(Kind.IMAGE, chat(WORDS), colour="#285ac8"),
        answer(Kind.STREAM, stream(delta("words of "), delta("a 1", "stop"), end=False)),
        answer(Kind.STREAM, stream(ERROR, ERROR)),
        answer(Kind.STREAM, b""),
        answer(Kind.STREAM, b"data: {not json}\n\n"),
        answer(Kind.MESSAGES_STREAM, stream(*MESSAGE_PARTS, end=False)),
        answer(Kind.TEXT, ERROR, 502),
        answer(Kind.TEXT, ERROR, 502, "no_such_code"),
        answer(Kind.TEXT, ERROR, 503, "backend_lost"),
        answer(Kind.TEXT, b"Bad gateway", 502, "backend_lost"),
        answer(Kind.TEXT, {"detail": "lost"}, 502, "backend_lost"),
        answer(Kind.MESSAGES, ERROR, 502, "backend_lost"),
    ],
)
def test_what_is_neither(wrong: Answer) -> None:
    assert flaw(wrong) is not None


def test_a_broken_connection_is_for_the_invariants_to_judge() -> None:
    lost = answer(Kind.TEXT, b"")
    lost.lost = "broken: ClientOSError"
    assert flaw(lost) is None
    assert not lost.succeeded


def test_the_tree_is_what_is_documented() -> None:
    assert documented()["backend_lost"] == 502
    assert "image_worker_lost" in documented()
