from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.ico import decode_ico
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.probe import probe_all
from tests.media.codecs.probe.test_ico import dib, icon
from tests.media.codecs.samples import BLUE, GREEN, RED, YELLOW, corners, png, quarters

COLOURS = [RED, GREEN, BLUE, YELLOW]


def decoded(data: bytes) -> Raster:
    return decode_ico(data, probe_all(data))


@pytest.mark.parametrize("kind", ["png", "bmp"])
def test_icons_as_programs_write_them(kind: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(quarters()).convert("RGBA").save(buffer, "ICO", sizes=[(16, 8), (64, 32)], bitmap_format=kind)
    raster = decoded(buffer.getvalue())
    assert raster.alpha
    assert corners(raster.samples) == [(*colour, 255) for colour in COLOURS]


def test_the_mask_is_transparency() -> None:
    rows = bytes(4) * 2  # two rows of 8-bit indices, bottom up
    palette = bytes((*RED[::-1], 0)) + bytes(4 * 255)
    mask = bytes((0b01000000, 0, 0, 0, 0, 0, 0, 0))
    raster = decoded(icon((2, 2, 8, dib(2, 2, 8) + palette + rows + mask)))
    assert raster.samples[:, :, 3].tolist() == [[255, 255], [255, 0]]
    assert raster.samples[0, 0].tolist() == [*RED, 255]


def test_a_mask_that_is_missing_hides_nothing() -> None:
    rows = struct.pack("<8B", *RED[::-1], *GREEN[::-1], 0, 0) * 1
    assert decoded(icon((2, 1, 24, dib(2, 1, 24) + rows))).samples[0, :, 3].tolist() == [255, 255]


@pytest.mark.parametrize("alpha", [0, 77])
def test_32_bits_carry_transparency_unless_all_of_it_is_zero(alpha: int) -> None:
    rows = bytes((*BLUE[::-1], alpha)) * 4
    raster = decoded(icon((2, 2, 32, dib(2, 2, 32) + rows + bytes(8))))
    assert raster.samples[0, 0].tolist() == [*BLUE, alpha or 255]


def test_cut_pictures_are_undecodable() -> None:
    noise = np.random.default_rng(5).integers(0, 255, (32, 64, 3), np.uint8)
    whole = icon((64, 32, 32, png(noise)))
    with pytest.raises(Undecodable):
        decode_ico(whole[:-4_000], probe_all(whole))
    bitmap = icon((16, 16, 32, dib(16, 16, 32) + bytes(16 * 16 * 4)))
    with pytest.raises(Undecodable):
        decode_ico(bitmap[:-200], probe_all(bitmap))
