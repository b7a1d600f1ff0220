from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.errors import GatewayBug, ImageTooLarge, Undecodable, UnsupportedFormat
from gateway.media.messages import (
    MAX_MESSAGE_BYTES,
    Bytes,
    Effort,
    Examine,
    Examined,
    Failed,
    Measure,
    Measured,
    Prepare,
    PreparedAt,
    Ready,
    StartFailed,
    as_error,
    decode_answer,
    decode_question,
    encode,
    failure,
)
from gateway.types import Change, ColourModel, Detail, ImageFormat, Probe, Size

WHERE = Bytes(65_536, 4_000_000, is_text=True, has_escapes=False)
PROBE = Probe(ImageFormat.JPEG, Size(4032, 3024), orientation=6, colour=ColourModel.CMYK, progressive=True, scans=10)
EFFORT = Effort(1 << 28, 0.07)


def test_questions_survive_the_way(kit: Any) -> None:
    plan = kit.plan(Change.RESIZED, Change.ORIENTATION)
    for question in (
        Examine(WHERE, b"k" * 32, 1, 2),
        Measure(WHERE, PROBE, 5, (Size(1312, 960),)),
        Prepare(WHERE, plan, PROBE, 5, wants_sha256=True),
    ):
        assert decode_question(encode(question)) == question
        assert len(encode(question)) < 1_000


def test_answers_survive_the_way() -> None:
    for answer in (
        Ready("pillow-simd-1", 1 << 26),
        StartFailed("no such backend"),
        Examined(3_000_000, b"p" * 16, b"c" * 32, PROBE, canonical=True, effort=EFFORT, bare_base64=True),
        Measured(Detail(3_048_192, (20_000, 90_000), 12), (41.5, 99.0), EFFORT),
        PreparedAt(500_000, 1312, 960, ImageFormat.JPEG, 375_000, None, EFFORT),
        Failed("image_undecodable", "It is cut off.", "", EFFORT),
    ):
        assert decode_answer(encode(answer)) == answer


@pytest.mark.parametrize("data", [b"", b"\xff", b"\x93\xa5Ready\x01", encode(Examine(WHERE, b"k", 1, 2))])
def test_nonsense_is_no_answer(data: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_answer(data)


def test_a_giant_message_is_never_sent() -> None:
    with pytest.raises(ValueError, match="a message of"):
        encode(StartFailed("x" * MAX_MESSAGE_BYTES))


@pytest.mark.parametrize("error", [Undecodable("Cut."), UnsupportedFormat("No."), ImageTooLarge("9 of 8", detail="d")])
def test_expected_failures_come_back_as_they_were(error: Any) -> None:
    failed = decode_answer(encode(failure(error, EFFORT)))
    assert isinstance(failed, Failed)
    back = as_error(failed)
    assert (type(back), back.message, back.detail) == (type(error), error.message, error.detail)


@pytest.mark.parametrize("code", ["gateway_bug", "unauthenticated", "no_such_code"])
def test_a_worker_cannot_raise_what_is_not_its_business(code: str) -> None:
    error = as_error(Failed(code, "believe me", "TypeError at x.py:1", EFFORT))
    assert isinstance(error, GatewayBug)
    assert error.message == GatewayBug.summary
    assert "TypeError" in str(error.detail)
