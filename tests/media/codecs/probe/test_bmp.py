from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    for data in (header(2, 2, 24, 4), header(2, 2, 24, 5), header(2, 2, 4, 1), header(2, -2, 8, 1), header(2, 2, 8, 3)):
        with pytest.raises(UnsupportedFormat):
            whole(data)
    with pytest.raises(UnsupportedFormat, match="8388608 bytes"):
        whole(header(2, 2, 8, 1) + bytes(8_500_000))


def test_run_length_rows_and_the_headers_of_os2_are_read() -> None:
    assert whole(header(6, 2, 8, 1)).raster == Size(6, 2)
    assert whole(header(6, 2, 4, 2)).complete
    core = b"BM" + bytes(8) + struct.pack("<IIHHHH", 26, 12, 5, 3, 1, 24)
    assert whole(core + bytes(48)).raster == Size(5, 3)
    assert not whole(core).complete
    assert whole(b"BM" + bytes(8) + struct.pack("<IIiiHH", 30, 16, 5, 3, 1, 24) + bytes(48)).raster == Size(5, 3)


@given(st.binary(max_size=80))
def test_any_header_is_refused_in_documented_words(data: bytes) -> None:
    try:
        found = whole(b"BM" + data)
    except (Undecodable, UnsupportedFormat):
        return
    assert found.raster.pixels > 0


def test_headers_without_sense_are_undecodable() -> None:
    bad = [header(0, 2), header(-2, 2), header(2, 0), header(2, -(2**31)), header(2, 2, 7), header(2, 2, dib_bytes=8)]
    for data in (*bad, b"BM", header(2, 2)[:30]):
        with pytest.raises(Undecodable):
            whole(data)
