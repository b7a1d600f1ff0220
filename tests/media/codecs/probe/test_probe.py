"""The whole probe: whatever the bytes, an answer or one of the documented errors, in bounded steps."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe import HEAD_BYTES, TAIL_BYTES, NeedMore, probe, probe_all
from gateway.types import ImageFormat, Probe
from tests.media.codecs.samples import (
    chunk,
    exif,
    gif,
    gif_frame,
    grey_tiff,
    jpeg,
    oriented_jpeg,
    png,
    quarters,
    riff,
    saved,
    vp8x,
    webp,
)

SEEDS = [
    oriented_jpeg(6),
    jpeg(progressive=True),
    png(before=chunk(b"acTL", bytes(8)) + chunk(b"eXIf", exif(6))),
    webp(),
    riff(vp8x((64, 32), 0x1E), (b"ANMF", bytes(24)), (b"EXIF", exif(6))),
    gif(gif_frame((0, 0, 8, 8), 1), gif_frame((0, 0, 8, 8), 2), size=(8, 8)),
    saved(quarters(), "P", "BMP"),
    grey_tiff(following=8),
    saved(quarters(), "RGB", "TIFF"),
]


@pytest.mark.parametrize(
    ("kind", "data"), [(ImageFormat.JPEG, jpeg()), (ImageFormat.PNG, png()), (ImageFormat.TIFF, grey_tiff())]
)
def test_the_format_is_read_from_the_bytes(kind: ImageFormat, data: bytes) -> None:
    assert probe_all(data).format is kind


def test_formats_without_a_decoder_are_refused_with_what_to_send() -> None:
    refused = {b"%PDF-1.7": "PDF documents .*send pages", b"<svg>": "SVG is a drawing", b"8BPS": "send JPEG"}
    for data, words in refused.items():
        with pytest.raises(UnsupportedFormat, match=words):
            probe_all(data)


def test_what_is_no_image_is_undecodable() -> None:
    for data, words in ((b"", "empty"), (b"<html>", "text"), (b"hello", "text"), (bytes(4_096), "known format")):
        with pytest.raises(Undecodable, match=words):
            probe_all(data)


def test_large_ordinary_files_need_only_head_and_tail() -> None:
    noise = np.random.default_rng(4).integers(0, 255, (400, 400, 3), np.uint8)
    for data in (oriented_jpeg(6, pixels=noise), png(noise), saved(noise, "RGB", "BMP"), webp(noise, lossless=True)):
        assert len(data) > HEAD_BYTES + TAIL_BYTES
        assert probe(data[:HEAD_BYTES], data[-TAIL_BYTES:], len(data)) == probe_all(data)


def look(head: bytes, tail: bytes, byte_count: int) -> Probe | None:
    try:
        return probe(head, tail, byte_count)
    except (Undecodable, UnsupportedFormat):
        return None


@given(st.binary(max_size=300))
def test_any_bytes_are_answered(data: bytes) -> None:
    look(data, data, len(data))


@given(st.sampled_from(SEEDS), st.data())
def test_any_damage_is_answered(seed: bytes, draw: st.DataObject) -> None:
    data = bytearray(seed)
    for _ in range(draw.draw(st.integers(1, 6))):
        at = draw.draw(st.integers(0, len(data) - 1))
        data[at] = draw.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFE, 0xFF, data[at] ^ 1]))
    cut = draw.draw(st.integers(1, len(data)))
    damaged = bytes(data[:cut])
    found = look(damaged, damaged, len(damaged))
    if found is not None:
        assert found.raster.width > 0
        assert found.raster.height > 0
        assert found.orientation in range(1, 9)
        assert found.frames >= 1
        assert found.scans >= 1


@given(st.sampled_from(SEEDS), st.integers(32, 400), st.integers(1, 400))
def test_parts_never_contradict_the_whole(seed: bytes, head_bytes: int, tail_bytes: int) -> None:
    with contextlib.suppress(NeedMore):
        assert probe(seed[:head_bytes], seed[-tail_bytes:], len(seed)) == probe_all(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_repeated_structures_are_bounded(seed: bytes) -> None:
    middle = len(seed) // 2
    data = seed[:middle] + seed[middle : middle + 8] * 250_000 + seed[middle:]
    look(data, data, len(data))
