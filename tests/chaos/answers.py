"""One request of the load and what came back; whether that is a complete right answer or exactly one documented error.

Decided here: what right means, for each kind of request and each dialect. Not decided here: which errors a fault
excuses (``faults``) and who asks (``load``). The simulated engine quotes the user's text and tells size and colour of
what it saw, so an answer that belongs to another request, or to another picture, is seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.errors import GatewayError


class Kind(StrEnum):
    """What is asked for. ``BUDGET`` is a text request of a tenant whose budget is too small for all of its requests."""

    TEXT = "text"
    STREAM = "stream"
    IMAGE = "image"
    REMOTE = "remote"
    MESSAGES = "messages"
    MESSAGES_STREAM = "messages_stream"
    BUDGET = "budget"


STREAMS = frozenset({Kind.STREAM, Kind.MESSAGES_STREAM})
IMAGES = frozenset({Kind.IMAGE, Kind.REMOTE})
MESSAGES = frozenset({Kind.MESSAGES, Kind.MESSAGES_STREAM})


@dataclass(frozen=True, slots=True)
class Question:
    """``words`` must come back; ``colour`` is the picture's, as an engine tells it (#rrggbb)."""

    request_id: str
    kind: Kind
    words: str
    colour: str | None = None


@dataclass(slots=True)
class Answer:
    """What the client saw. ``lost``: how the connection failed, if it did, before the answer was complete."""

    question: Question
    asked_s: float
    ended_s: float = 0.0
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    lost: str | None = None

    @property
    def code(self) -> str | None:
        """The error's code as headers tell it, or a stream's own; ``None`` for a success."""
        return self.headers.get("x-vlmgw-error") or (_stream_error(self) if self.status == 200 else None)

    @property
    def succeeded(self) -> bool:
        return self.status == 200 and self.lost is None and self.code is None


def documented() -> dict[str, int]:
    """Every error of the gateway's tree: code -> status."""

    def walk(kind: type[GatewayError]) -> Iterator[tuple[str, int]]:
        yield kind.code, kind.status
        for each in kind.__subclasses__():
            yield from walk(each)

    return dict(walk(GatewayError))


_DOCUMENTED = documented()


def flaw(answer: Answer) -> str | None:
    """Why an answer is neither right nor one documented error; ``None`` if it is. Losses are not judged here."""
    if answer.lost is not None:
        return None
    if answer.status == 200:
        return _stream_flaw(answer) if answer.question.kind in STREAMS else _whole_flaw(answer)
    return _error_flaw(answer)


def _error_flaw(answer: Answer) -> str | None:
    code = answer.headers.get("x-vlmgw-error")
    if code not in _DOCUMENTED:
        return f"status {answer.status} with the code {code!r}, which no page documents: {answer.body[:200]!r}"
    if _DOCUMENTED[code] != answer.status:
        return f"{code} with status {answer.status} instead of {_DOCUMENTED[code]}"
    try:
        told = json.loads(answer.body)
    except ValueError:
        return f"{code}: the body is not one JSON document: {answer.body[:200]!r}"
    return _envelope_flaw(answer.question, told)


def _envelope_flaw(question: Question, told: Any) -> str | None:
    """Whether an error is spelt as its dialect spells errors."""
    error = told.get("error") if isinstance(told, dict) else None
    if not isinstance(error, dict) or not error.get("message") or not error.get("type"):
        return f"no error envelope: {str(told)[:200]}"
    if question.kind in MESSAGES and told.get("type") != "error":
        return f"not the envelope of the messages API: {str(told)[:200]}"
    return None


def _whole_flaw(answer: Answer) -> str | None:
    try:
        told = json.loads(answer.body)
        if answer.question.kind in MESSAGES:
            text, end = told["content"][0]["text"], told["stop_reason"]
        else:
            text, end = told["choices"][0]["message"]["content"], told["choices"][0]["finish_reason"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return f"200 without an answer ({error!r}): {answer.body[:200]!r}"
    return _text_flaw(answer.question, text, end)


def _text_flaw(question: Question, text: str, end: str | None) -> str | None:
    if not end:
        return "an answer without an end"
    if question.words not in text:
        return f"another request's answer: {text[:120]!r}"
    if question.colour is not None and not _looks_like(question.colour, text):
        return f"another picture's answer: {text[:120]!r} for {question.colour}"
    return None


def _looks_like(colour: str, text: str) -> bool:
    """Within what JPEG does to a plain colour, twice."""
    at = text.find("#")
    if at < 0:
        return False
    seen, wanted = text[at + 1 : at + 7], colour[1:]
    channels = [(int(seen[i : i + 2], 16), int(wanted[i : i + 2], 16)) for i in (0, 2, 4)]
    return all(abs(one - other) <= 6 for one, other in channels)


def events(body: bytes) -> list[str]:
    """The data of each complete event."""
    return [
        line.removeprefix(b"data:").strip().decode("utf-8", "replace")
        for block in body.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]
        for line in block.split(b"\n")
        if line.startswith(b"data:")
    ]


def _stream_errors(answer: Answer) -> list[dict[str, Any]]:
    told = [json.loads(data) for data in events(answer.body) if data != "[DONE]"]
    return [each for each in told if isinstance(each, dict) and isinstance(each.get("error"), dict)]


def _stream_error(answer: Answer) -> str | None:
    """The code of a stream's error event; where the dialect has no place for a code, its type."""
    if answer.question.kind not in STREAMS:
        return None
    errors = _stream_errors(answer)
    if not errors:
        return None
    error = errors[0]["error"]
    return str(error.get("code") or error.get("type"))


def _stream_flaw(answer: Answer) -> str | None:
    """A stream is whole (its last event is the dialect's end), or ends with exactly one error event."""
    try:
        errors = _stream_errors(answer)
    except ValueError:
        return f"an event that is not JSON: {answer.body[-200:]!r}"
    told = events(answer.body)
    if len(errors) > 1:
        return f"{len(errors)} errors in one stream"
    if errors:
        return _envelope_flaw(answer.question, errors[0])
    if not told:
        return "an empty stream"
    parsed = [json.loads(data) for data in told if data != "[DONE]"]
    if answer.question.kind is Kind.MESSAGES_STREAM:
        if parsed[-1].get("type") != "message_stop":
            return f"a stream without its end: {told[-1][:200]}"
        text = "".join(each["delta"].get("text", "") for each in parsed if each.get("type") == "content_block_delta")
        return _text_flaw(answer.question, text, "stop")
    if told[-1] != "[DONE]":
        return f"a stream without its end: {told[-1][:200]}"
    choices = [choice for each in parsed for choice in each.get("choices", ())]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    ends = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
    return _text_flaw(answer.question, text, ends[-1] if ends else None)
