from __future__ import annotations

import numpy as np
import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.probe.webp import is_lossless, probe_webp
from gateway.media.codecs.probe.window import NeedMore, Window
from gateway.types import Probe, Size
from tests.media.codecs.samples import bitstream, exif, quarters, riff, vp8x, webp

ALPHA, ANIMATION, EXIF, XMP = 0x10, 0x02, 0x08, 0x04
RGBA = np.dstack((quarters(), np.full((32, 64), 128, np.uint8)))


def whole(data: bytes) -> Probe:
    return probe_webp(Window(data, data, len(data)))


@pytest.mark.parametrize("lossless", [False, True])
def test_simple_files_tell_their_size(lossless: bool) -> None:
    data = webp(lossless=lossless)
    found = whole(data)
    assert (found.raster, found.has_alpha, found.frames, found.complete) == (Size(64, 32), False, 1, True)
    assert is_lossless(data) is lossless


@pytest.mark.parametrize("lossless", [False, True])
def test_transparency_is_seen(lossless: bool) -> None:
    assert whole(webp(RGBA, lossless=lossless)).has_alpha


def test_extended_files_carry_orientation() -> None:
    picture = bitstream(webp())
    assert whole(riff(vp8x((64, 32), EXIF), picture, (b"EXIF", exif(6)))).upright == Size(32, 64)
    assert whole(riff(vp8x((64, 32), EXIF), picture, (b"EXIF", b"Exif\0\0" + exif(3, ">")))).orientation == 3
    assert whole(riff(vp8x((64, 32), XMP), picture, (b"XMP ", b"<tiff:Orientation>8<"))).orientation == 8


def test_an_animation_has_the_size_of_its_canvas_and_its_frames_counted() -> None:
    frame = (b"ANMF", bytes(16))
    found = whole(riff(vp8x((100, 80), ANIMATION | ALPHA), (b"ANIM", bytes(6)), frame, frame, frame))
    assert (found.raster, found.frames, found.has_alpha) == (Size(100, 80), 3, True)


def test_a_cut_file_is_not_complete() -> None:
    data = webp()
    assert whole(data + b"trailing").complete
    for cut in (len(data) - 1, len(data) // 2, 40):
        assert not whole(data[:cut]).complete


def test_a_still_picture_must_fill_its_canvas() -> None:
    with pytest.raises(Undecodable, match="canvas"):
        whole(riff(vp8x((640, 320), 0), bitstream(webp())))


def test_files_without_a_sound_picture_are_undecodable() -> None:
    name, data = bitstream(webp())
    for broken in (
        riff(vp8x((64, 32), 0), (b"EXIF", exif(6))),
        riff((b"VP8 ", data[:3] + b"\0\0\0" + data[6:])),
        riff((b"VP8 ", bytes((data[0] | 1,)) + data[1:])),
        riff((b"VP8 ", data[:6] + bytes(4) + data[10:])),
        riff((b"VP8L", b"\x2e" + bytes(9))),
        riff((b"VP8L", b"\x2f\0\0\0\xe0" + bytes(9))),
        riff((name, data))[:16],
        riff((b"ICCP", bytes(40))),
    ):
        with pytest.raises(Undecodable):
            whole(broken)


def test_the_number_of_chunks_is_bounded() -> None:
    with pytest.raises(Undecodable, match="too many chunks"):
        whole(riff(*[(b"JUNK", b"")] * 140_000))


def test_more_is_asked_for_when_metadata_lies_out_of_sight() -> None:
    noise = np.random.default_rng(3).integers(0, 255, (128, 128, 3), np.uint8)
    data = riff(vp8x((128, 128), EXIF), bitstream(webp(noise, lossless=True)), (b"EXIF", exif(6) + bytes(400)))
    assert probe_webp(Window(data[:100], data[-900:], len(data))).orientation == 6
    with pytest.raises(NeedMore):
        probe_webp(Window(data[:100], data[-300:], len(data)))
