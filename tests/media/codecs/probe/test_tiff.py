from __future__ import annotations

import struct

import pytest

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.tiff import dialect_is_big, probe_tiff
from gateway.media.codecs.probe.window import NeedMore, Window
from gateway.types import ColourModel, Probe, Size
from tests.media.codecs.samples import grey_tiff, quarters, saved, tiff


def whole(data: bytes) -> Probe:
    return probe_tiff(Window(data, data, len(data)))


@pytest.mark.parametrize("endian", ["<", ">"])
def test_the_first_directory_tells(endian: str) -> None:
    found = whole(grey_tiff(endian=endian, orientation=6))
    assert (found.raster, found.upright, found.orientation) == (Size(8, 4), Size(4, 8), 6)
    assert (found.colour, found.bits_per_sample, found.frames, found.complete) == (ColourModel.GREY, 8, 1, True)


@pytest.mark.parametrize(
    ("mode", "colour", "alpha"),
    [
        ("RGB", ColourModel.RGB, False),
        ("RGBA", ColourModel.RGB, True),
        ("P", ColourModel.PALETTE, False),
        ("CMYK", ColourModel.CMYK, False),
        ("1", ColourModel.GREY, False),
        ("LA", ColourModel.GREY, True),
    ],
)
def test_photometric_and_extra_samples(mode: str, colour: ColourModel, alpha: bool) -> None:
    found = whole(saved(quarters(), mode, "TIFF"))
    assert (found.raster, found.colour, found.has_alpha, found.complete) == (Size(64, 32), colour, alpha, True)


def test_pages_are_counted_and_a_loop_ends() -> None:
    first = grey_tiff(following=1_000).ljust(1_000, b"\0")
    second = struct.pack("<H", 1) + struct.pack("<HHII", 256, 3, 1, 8)
    assert whole(first + second + struct.pack("<I", 0)).frames == 2
    assert whole(first + second + struct.pack("<I", 1_000)).frames == 2
    assert whole(first + second + struct.pack("<I", 8)).frames == 2
    assert whole(grey_tiff(following=9_999)).frames == 1


def test_pixels_outside_the_file_make_it_incomplete() -> None:
    data = grey_tiff()
    assert whole(data + b"tail").complete
    assert not whole(data[:-1]).complete
    assert not whole(tiff([(256, 3, 1, 8), (257, 3, 1, 4)], b"")).complete


def test_big_tiff_is_read() -> None:
    entries = [(256, 3, 8), (257, 3, 4), (258, 3, 8), (262, 3, 1), (273, 16, 16), (279, 16, 32)]
    body = b"".join(struct.pack("<HHQQ", tag, kind, 1, value) for tag, kind, value in entries)
    data = b"II\x2b\0\x08\0\0\0" + struct.pack("<Q", 48) + bytes(32) + struct.pack("<Q", len(entries)) + body + bytes(8)
    assert dialect_is_big(data)
    assert (whole(data).raster, whole(data).complete) == (Size(8, 4), True)


def test_samples_and_colours_without_a_decoder_are_refused() -> None:
    size = [(256, 3, 1, 8), (257, 3, 1, 4)]
    for extra in ((258, 3, 1, 32), (339, 3, 1, 3), (262, 3, 1, 8), (262, 3, 1, 6), (262, 3, 1, 32803)):
        with pytest.raises(UnsupportedFormat):
            whole(tiff([*size, extra], b""))
    assert whole(tiff([*size, (259, 3, 1, 7), (262, 3, 1, 6)], b"")).colour is ColourModel.RGB


def test_directories_without_sense_are_undecodable() -> None:
    no_height = tiff([(256, 3, 1, 8)], b"")
    no_width = tiff([(256, 3, 1, 0), (257, 3, 1, 4)], b"")
    outside = b"II*\0" + struct.pack("<I", 5_000) + bytes(50)
    empty = b"II*\0" + struct.pack("<IH", 8, 0) + bytes(50)
    endless = b"II*\0" + struct.pack("<IH", 8, 60_000) + bytes(50)
    for data in (no_height, no_width, outside, empty, endless, b"II*\0\x08\0\0\0"):
        with pytest.raises(Undecodable):
            whole(data)


def test_more_is_asked_for_when_the_directory_lies_out_of_sight() -> None:
    data = grey_tiff(width=40, height=40)
    with pytest.raises(NeedMore):
        probe_tiff(Window(data[:60], data[-10:], len(data)))
