from __future__ import annotations

import struct

import pytest

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.bmp import probe_bmp
from gateway.media.codecs.probe.window import Window
from gateway.types import ColourModel, Probe, Size
from tests.media.codecs.samples import quarters, saved


def whole(data: bytes) -> Probe:
    return probe_bmp(Window(data, data, len(data)))


def header(
    width: int, height: int, bits: int = 24, compression: int = 0, dib_bytes: int = 40, masks: bytes = b""
) -> bytes:
    dib = struct.pack("<IiiHHI", dib_bytes, width, height, 1, bits, compression) + bytes(20) + masks
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, 14 + len(dib)) + dib


@pytest.mark.parametrize(
    ("mode", "colour"),
    [("1", ColourModel.PALETTE), ("L", ColourModel.PALETTE), ("P", ColourModel.PALETTE), ("RGB", ColourModel.RGB)],
)
def test_depth_tells_palette_from_colour(mode: str, colour: ColourModel) -> None:
    found = whole(saved(quarters(), mode, "BMP"))
    assert (found.raster, found.colour, found.complete) == (Size(64, 32), colour, True)


def test_a_negative_height_means_top_down() -> None:
    assert whole(header(4, -2) + bytes(24)).raster == Size(4, 2)


def test_an_alpha_mask_means_transparency() -> None:
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    assert whole(header(2, 2, 32, 3, 56, masks) + bytes(16)).has_alpha
    assert not whole(header(2, 2, 32, 3, 56, masks[:12] + bytes(4)) + bytes(16)).has_alpha


def test_missing_rows_make_a_file_incomplete_but_not_missing_padding() -> None:
    assert whole(header(3, 2) + bytes(12 + 9)).complete
    assert not whole(header(3, 2) + bytes(12 + 8)).complete


def test_other_headers_are_refused() -> None:
    for data in (
        header(2, 2, 8, 1),
        header(2, 2, 24, 4),
        b"BM" + bytes(12) + struct.pack("<IHHHH", 12, 2, 2, 1, 24),
    ):
        with pytest.raises(UnsupportedFormat):
            whole(data)


def test_headers_without_sense_are_undecodable() -> None:
    bad = [header(0, 2), header(-2, 2), header(2, 0), header(2, -(2**31)), header(2, 2, 7), header(2, 2, dib_bytes=20)]
    for data in (*bad, b"BM", header(2, 2)[:30]):
        with pytest.raises(Undecodable):
            whole(data)
