from __future__ import annotations

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gateway.media.codecs.png_writer import survey, write_png
from gateway.media.codecs.probe import probe_all
from gateway.types import ColourModel, Size
from tests.media.codecs.samples import Pixels, mode_of, opened, quarters


def rows_of(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels).reshape(pixels.shape[0], -1)


@given(
    arrays.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))),
    st.sampled_from([0, 1, 2]),
)
def test_every_filter_gives_the_pixels_back(pixels: Pixels, filter_type: int) -> None:
    height, width, channels = pixels.shape
    data = write_png(rows_of(pixels), Size(width, height), channels, filter_type)
    assert (opened(data)[:, :, :channels] == pixels).all()
    assert mode_of(data) == ("L" if channels == 1 else "RGB")


def test_the_file_is_a_complete_png_without_metadata() -> None:
    pixels = quarters()
    data = write_png(rows_of(pixels), Size(64, 32), 3, 1)
    found = probe_all(data)
    assert (found.raster, found.colour, found.complete) == (Size(64, 32), ColourModel.RGB, True)
    assert [data[at - 4 : at].decode() for at in (16, 41)] == ["IHDR", "IDAT"]
    assert data.endswith(b"IEND" + zlib.crc32(b"IEND").to_bytes(4, "big"))


def test_the_filter_suits_the_picture() -> None:
    noise = np.random.default_rng(9).integers(0, 255, 400, np.uint8)
    alike_rows = np.repeat(noise[None, :], 400, axis=0)
    assert survey(alike_rows, 1).filter_type == 2
    slopes = (np.arange(400)[None, :] * 3 + noise[:, None]).astype(np.uint8)
    assert survey(slopes, 1).filter_type == 1
    two_colours = np.random.default_rng(9).integers(0, 2, (400, 400)).astype(np.uint8) * 200
    assert survey(two_colours, 1).filter_type == 0


def test_the_ratio_tells_noise_from_flat_areas() -> None:
    noise = np.random.default_rng(9).integers(0, 255, (300, 300), np.uint8)
    assert survey(noise, 1).ratio > 0.9
    assert survey(np.zeros((300, 300), np.uint8), 1).ratio < 0.02
