from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.bmp import decode_bmp, decode_dib
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.probe import probe_all
from gateway.media.codecs.probe.bmp import read_dib
from gateway.media.codecs.probe.window import Window
from tests.media.codecs.samples import BLUE, GREEN, RED, YELLOW, corners, quarters, saved

COLOURS = [RED, GREEN, BLUE, YELLOW]
PALETTE = b"".join(bytes((*colour[::-1], 0)) for colour in COLOURS)


def decoded(data: bytes) -> Raster:
    return decode_bmp(data, probe_all(data))


@pytest.mark.parametrize(("mode", "bands"), [("1", 3), ("L", 1), ("P", 3), ("RGB", 3)])
def test_bmp_of_every_depth(mode: str, bands: int) -> None:
    data = saved(quarters(), mode, "BMP")
    raster = decode_bmp(data, probe_all(data))
    assert raster.samples.shape == (32, 64, bands)
    assert raster.grey is (bands == 1)
    if mode == "RGB":
        assert corners(raster.samples) == COLOURS


def test_a_cut_bmp_is_undecodable() -> None:
    data = saved(quarters(), "RGB", "BMP")
    with pytest.raises(Undecodable):
        decode_bmp(data[:-100], probe_all(data))


def runs(width: int, height: int, bits: int, data: bytes) -> bytes:
    """A BMP of run-length rows with a palette of four colours."""
    dib = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 1 if bits == 8 else 2, len(data), 0, 0, 4, 0)
    at = 14 + len(dib) + len(PALETTE)
    return b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) + dib + PALETTE + data


def indices(raster: Raster) -> list[list[int]]:
    return [[COLOURS.index((int(pixel[0]), int(pixel[1]), int(pixel[2]))) for pixel in row] for row in raster.samples]


def test_runs_literals_and_jumps_of_eight_bits() -> None:
    # From the bottom: three of 1, end of line; literal 1 2 3 with its padding; a jump over the next row's first pixel.
    data = bytes((3, 1, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 2, 1, 0, 2, 2, 0, 1))
    assert indices(decoded(runs(3, 3, 8, data))) == [[0, 2, 2], [1, 2, 3], [1, 1, 1]]


def test_runs_and_literals_of_four_bits() -> None:
    data = bytes((5, 0x12, 0, 0, 0, 5, 0x12, 0x30, 0x10, 0, 0, 1))
    assert indices(decoded(runs(5, 2, 4, data))) == [[1, 2, 3, 0, 1], [1, 2, 1, 2, 1]]


def test_runs_stay_inside_their_row() -> None:
    assert indices(decoded(runs(2, 1, 8, bytes((200, 3, 0, 1))))) == [[3, 3]]


def test_runs_that_end_too_early_are_undecodable() -> None:
    with pytest.raises(Undecodable):
        decoded(runs(4, 4, 8, bytes((4, 1, 0, 0, 4))))
    with pytest.raises(Undecodable):
        decoded(runs(4, 4, 8, bytes((4, 1, 0, 2))))


@pytest.mark.parametrize("bits", [8, 24])
def test_the_short_headers_of_os2(bits: int) -> None:
    rows = bytes((1, 2, 0, 0, 0, 3, 0, 0)) if bits == 8 else b"".join(bytes(c[::-1]) for c in (GREEN, BLUE)) + b"\0\0"
    rows = rows if bits == 8 else rows * 2
    palette = b"".join(bytes(colour[::-1]) for colour in COLOURS) + bytes(3 * 252) if bits == 8 else b""
    at = 26 + len(palette)
    file = b"BM" + bytes(8) + struct.pack("<IIHHHH", at, 12, 2, 2, 1, bits) + palette + rows
    shown = decoded(file).samples
    assert [tuple(map(int, pixel)) for pixel in shown[1]] == [GREEN, BLUE]
    assert tuple(map(int, shown[0, 1])) == (YELLOW if bits == 8 else BLUE)


def test_a_salvaged_file_keeps_the_rows_it_has() -> None:
    data = saved(quarters(), "RGB", "BMP")
    cut = data[: len(data) - 20 * 64 * 3]
    raster = decode_bmp(cut, probe_all(cut), salvage=True)
    assert corners(raster.samples)[2:] == [BLUE, YELLOW]
    assert not raster.samples[0].any()


def test_a_bitmap_without_its_file_header() -> None:
    data = saved(quarters(), "RGB", "BMP")[14:]
    header = read_dib(Window(data, data, len(data)), 0)
    assert corners(decode_dib(data, header)) == COLOURS
    grey = saved(np.zeros((8, 8, 3), np.uint8), "L", "BMP")[14:]
    assert decode_dib(grey, read_dib(Window(grey, grey, len(grey)), 0)).shape == (8, 8, 3)


@given(st.binary(max_size=60), st.sampled_from((4, 8)))
def test_any_runs_are_decoded_or_refused(data: bytes, bits: int) -> None:
    file = runs(5, 3, bits, data)
    with contextlib.suppress(Undecodable):
        assert decoded(file).samples.shape == (3, 5, 3)


def test_pixels_that_begin_beyond_the_end_are_not_made_up() -> None:
    file = bytearray(saved(quarters(), "RGB", "BMP"))
    file[10:14] = b"\0\0\0\xf0"  # else four gigabytes of zeros
    with pytest.raises(Undecodable, match="beyond"):
        decode_bmp(bytes(file), probe_all(bytes(file)), salvage=True)
