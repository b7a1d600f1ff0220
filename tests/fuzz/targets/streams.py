"""What comes piece by piece reads the same however it is cut: boundaries of events, their usage, forms."""

from __future__ import annotations

import random

from gateway.dialects.sse import EventBoundary
from gateway.errors import GatewayError
from gateway.stages.form_fields import FormFields, boundary_of
from gateway.stages.stream_usage import UsageStripper
from gateway.upstream.transport.looking import first_data
from tests.fuzz.targets.target import Target, documented


def events(data: bytes) -> None:
    """Boundaries, and what is left once usage is taken out, are the same whole and in pieces."""
    cuts = _cuts(data)
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
        "event streams in any pieces: boundaries, the first data, usage taken out",
        events,
        (
            "gateway.dialects.sse",
            "gateway.stages.stream_usage",
            "gateway.upstream.transport.looking",
        ),
    ),
    Target("forms", "forms in any pieces: which part names the model", forms, ("gateway.stages.form_fields",)),
)
