from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ImageTooLarge, InvalidRequest, Undecodable, UnsupportedFormat
from gateway.media.sources import (
    HEAD_BYTES,
    SourceKind,
    canonical_prefix,
    check_accepted,
    check_pixels,
    check_size,
    classify,
    parse_data_url_head,
    resolve_head,
)
from gateway.ports import Accepts
from gateway.types import ImageFormat, Probe, Size

PNG = b"iVBORw0KGgoAAAANSUhEUgAAAcAAAADgCAIA"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"data:image/png;base64,iVBO", SourceKind.DATA_URL),
        (b"DATA:IMAGE/PNG;BASE64,iVBO", SourceKind.DATA_URL),
        (b" \n data:,x", SourceKind.DATA_URL),
        (b"http://host/x.png", SourceKind.REMOTE),
        (b"HTTPS://host/x.png", SourceKind.REMOTE),
        (PNG, SourceKind.RAW_BASE64),
        (b"/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEB", SourceKind.RAW_BASE64),
        (b"UklGRlQAAABXRUJQVlA4TEgAAAAvv8E3AB8gJCBOyGZb", SourceKind.RAW_BASE64),
        (b"AAAAHGZ0eXBhdmlmAAAAAG1pZjFhdmlmbWlhZgAA", SourceKind.RAW_BASE64),
        (PNG[:20] + b"\n" + PNG[20:], SourceKind.RAW_BASE64),
    ],
)
def test_a_source_is_told_by_its_beginning(head: bytes, kind: SourceKind) -> None:
    assert classify(head) is kind


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"   ",
        b"file:///etc/passwd",
        b"FILE:/x",
        b"../secret.png",
        b"/9j/short",
        b"ftp://x/y",
        b"iVBORw0KGgo/../x.png",
        b"//host/x.png",
        b"C:\\x.png",
        b"javascript:1",
        b"plain words",
        b"\xff\xfe",
    ],
)
def test_anything_else_is_refused_unopened(head: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        classify(head)
    assert "passwd" not in refused.value.message


@pytest.mark.parametrize(
    ("text", "media_type", "is_base64", "start"),
    [
        (b"data:image/png;base64,AA", "image/png", True, 22),
        (b"data:;base64,AA", "", True, 13),
        (b"data:,AA", "", False, 6),
        (b"DATA:IMAGE/PNG;BASE64,AA", "image/png", True, 22),
        (b"data:image/png;charset=utf-8;base64,AA", "image/png", True, 36),
        (b"data:image/png;name=photo%20one.png;base64,AA", "image/png", True, 43),
        (b"data:image/png; base64 ,AA", "image/png", True, 24),
        (b"data:image/png;base64;x=y,AA", "image/png", False, 26),
    ],
)
def test_every_spelling_of_a_head_is_read(text: bytes, media_type: str, is_base64: bool, start: int) -> None:
    head = parse_data_url_head(text)
    assert (head.media_type, head.is_base64, head.payload_start) == (media_type, is_base64, start)


def test_a_head_without_a_comma_is_no_head() -> None:
    with pytest.raises(Undecodable, match="comma"):
        parse_data_url_head(b"data:image/png;base64" + b"A" * HEAD_BYTES + b",")


@given(st.text(max_size=40), st.integers(0, 60))
def test_escapes_are_resolved_as_far_as_the_window_reaches(text: str, length: int) -> None:
    escaped = json.dumps(text)[1:-1].encode().replace(b"/", b"\\/")
    resolved = resolve_head(escaped[:length], has_escapes=True)
    whole = text.encode("utf-8", "surrogatepass")
    # A cut inside a surrogate pair leaves its first half: the characters before it are right all the same.
    common = resolved[:-3] if resolved[-3:-2] == b"\xed" else resolved
    assert whole.startswith(common)
    if length >= len(escaped):
        assert resolved == whole


def test_an_unknown_escape_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        resolve_head(b"data:\\q" + b"x" * 40, has_escapes=True)
    assert resolve_head(b"data:\\q", has_escapes=False) == b"data:\\q"


def test_limits_are_named_in_plain_numbers() -> None:
    check_size(10, 10)
    with pytest.raises(ImageTooLarge, match=r"11 bytes; at most 10"):
        check_size(11, 10)
    probe = Probe(ImageFormat.PNG, Size(12_000, 12_000))
    check_pixels(probe, 144_000_000)
    with pytest.raises(ImageTooLarge, match=r"12000 x 12000 = 144000000 pixels; at most 100000000"):
        check_pixels(probe, 100_000_000)
    check_accepted(probe, Accepts())
    with pytest.raises(Undecodable, match="cut off"):
        check_accepted(Probe(ImageFormat.PNG, Size(1, 1), complete=False), Accepts())
    check_accepted(Probe(ImageFormat.PNG, Size(1, 1), complete=False), Accepts(truncated=True))
    with pytest.raises(UnsupportedFormat, match="PDF"):
        check_accepted(Probe(ImageFormat.PDF, Size(1, 1)), Accepts())
    check_accepted(Probe(ImageFormat.PDF, Size(1, 1)), Accepts(documents=True))


def test_the_prefix_names_the_true_type() -> None:
    assert canonical_prefix(Probe(ImageFormat.JPEG, Size(1, 1))) == b"data:image/jpeg;base64,"
