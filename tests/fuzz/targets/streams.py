"""What comes piece by piece reads the same however it is cut: events of streams, their usage, forms."""

from __future__ import annotations

import random
import re

from gateway.dialects.sse import Event, EventBoundary, EventReader
from gateway.errors import GatewayError
from gateway.stages.form_fields import FormFields, boundary_of
from gateway.stages.stream_usage import UsageStripper
from gateway.upstream.transport.looking import first_data
from tests.fuzz.targets.target import Target, documented

_LIMIT_BYTES = 256


def events(data: bytes) -> None:
    """The reader reads what the standard's steps give, whole and in pieces; so does what takes usage out."""
    cuts = _cuts(data)
    whole = EventReader()
    assert whole.feed(data) == _by_the_book(data)
    pieces = EventReader()
    assert [event for piece in cuts for event in pieces.feed(piece)] == _by_the_book(data)
    narrow, narrower = EventReader(_LIMIT_BYTES), EventReader(_LIMIT_BYTES)
    assert narrow.feed(data) == [event for piece in cuts for event in narrower.feed(piece)]
    assert narrow.dropped_count == narrower.dropped_count
    first_data(data)
    _boundaries(data, cuts)
    _usage(data, cuts)


def forms(data: bytes) -> None:
    """A form names the same model however it is cut, and where it says."""
    line, _, body = data.partition(b"\n")
    try:
        boundary = boundary_of(line.decode("utf-8", "surrogateescape"))
    except GatewayError as error:
        documented(error)
        return
    assert boundary
    whole = _model_of(boundary, [body])
    assert whole == _model_of(boundary, _cuts(body))
    model, at = whole if isinstance(whole, tuple) else (None, 0)
    if model is not None:
        assert body[at : at + len(model)] == model


def _model_of(boundary: bytes, pieces: list[bytes]) -> tuple[bytes | None, int] | str:
    fields = FormFields(boundary)
    try:
        for piece in pieces:
            fields.feed(piece)
    except GatewayError as error:
        documented(error)
        return error.code
    return fields.model, fields.value_at


def _cuts(data: bytes) -> list[bytes]:
    """The data in pieces, always the same ones; among them empty ones."""
    rng = random.Random(data)
    most = rng.choice((1, 2, 7, 64))
    pieces, at = [], 0
    while at < len(data):
        size = rng.randint(0, most)
        pieces.append(data[at : at + size])
        at += size
    return pieces


def _by_the_book(data: bytes) -> list[Event]:
    """WHATWG HTML §9.2.6 step by step, over the whole stream: the oracle."""
    lines = re.split(rb"\r\n|\r|\n", data)[:-1]  # what no line end closes is discarded
    found: list[Event] = []
    buffer: list[str] = []
    name = ""
    for number, raw in enumerate(lines):
        text = (raw.removeprefix(b"\xef\xbb\xbf") if number == 0 else raw).decode("utf-8", "replace")
        if not text:
            if buffer:
                found.append(Event("\n".join(buffer), name or "message"))
            buffer, name = [], ""
            continue
        field, colon, value = text.partition(":")
        value = value.removeprefix(" ")
        if not field and colon:
            continue
        if field == "data":
            buffer.append(value)
        elif field == "event":
            name = value
    return found


def _boundaries(data: bytes, cuts: list[bytes]) -> None:
    whole, pieces = EventBoundary(), EventBoundary()
    whole.feed(data)
    for piece in cuts:
        pieces.feed(piece)
    assert whole.here == pieces.here


def _usage(data: bytes, cuts: list[bytes]) -> None:
    whole = _through(UsageStripper(), [data])
    assert whole == _through(UsageStripper(), cuts)
    if b'"usage"' not in data:
        assert whole == data


def _through(stripper: UsageStripper, pieces: list[bytes]) -> bytes:
    return b"".join(map(stripper.feed, pieces)) + stripper.finish()


TARGETS = (
    Target(
        "events",
        "event streams in any pieces, against the standard's steps",
        events,
        (
            "gateway.dialects.sse",
            "gateway.stages.stream_usage",
            "gateway.upstream.transport.looking",
        ),
    ),
    Target("forms", "forms in any pieces: which part names the model", forms, ("gateway.stages.form_fields",)),
)
