from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.codecs.probe.sniff import looks_like_text, other_kind, sniff
from gateway.types import ImageFormat
from tests.media.codecs.samples import gif, grey_tiff, jpeg, png, quarters, saved, webp


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (jpeg(), ImageFormat.JPEG),
        (png(), ImageFormat.PNG),
        (webp(), ImageFormat.WEBP),
        (gif(), ImageFormat.GIF),
        (saved(quarters(), "RGB", "BMP"), ImageFormat.BMP),
        (grey_tiff(), ImageFormat.TIFF),
        (grey_tiff(endian=">"), ImageFormat.TIFF),
        (b"\0\0\0\x20ftypavif", ImageFormat.AVIF),
        (b"\0\0\0\x20ftypmif1\0\0\0\0mif1avifmiaf", ImageFormat.AVIF),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", ImageFormat.HEIC),
        (b"\0\0\0\x0cjP  \r\n\x87\n", ImageFormat.JPEG2000),
        (b"\xff\x4f\xff\x51\0", ImageFormat.JPEG2000),
        (b"\0\0\1\0\1\0", ImageFormat.ICO),
        (b"%PDF-1.7", ImageFormat.PDF),
        (b"  <svg xmlns='x'>", ImageFormat.SVG),
        (b"\xef\xbb\xbf<?xml version='1.0'?><!-- a --><svg>", ImageFormat.SVG),
        (b"<!DOCTYPE svg PUBLIC 'x'><SVG>", ImageFormat.SVG),
        (b"<html><svg>", None),
        (b"<?xml version='1.0'?><note/>", None),
        (b"\0\0\0\x18ftypisom", None),
        (b"hello", None),
        (bytes(4_096), None),
    ],
)
def test_first_bytes_name_the_format(data: bytes, wanted: ImageFormat | None) -> None:
    assert sniff(data) is wanted


def test_other_kinds_are_named() -> None:
    assert other_kind(b"8BPS\0\1") == "Photoshop"
    assert other_kind(b"\xff\x0a\0") == "JPEG XL"
    assert other_kind(b"\0\0\0\x18ftypisom") == "ISO media (video)"
    assert other_kind(b"PK\3\4") is None


def test_text_is_told_from_bytes() -> None:
    assert looks_like_text(b"<!doctype html>\r\n<title>404</title>")
    assert looks_like_text("größer".encode())
    assert not looks_like_text(b"")
    assert not looks_like_text(b"abc\0")


@given(st.binary(max_size=64))
def test_any_bytes_are_sniffed(data: bytes) -> None:
    assert sniff(data) is None or isinstance(sniff(data), ImageFormat)
    assert other_kind(data) is None or other_kind(data)
