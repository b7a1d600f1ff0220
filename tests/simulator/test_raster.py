from __future__ import annotations

import numpy
import pytest
import pyvips

from gateway.simulator.raster import Finish, OversizedImageError, Raster, UnreadableImageError, decode
from tests.simulator import drawn

LIMIT = 178_956_970


def _vllm(data: bytes) -> Raster:
    return decode(data, LIMIT, Finish.UPRIGHT_ON_WHITE)


def _sglang(data: bytes) -> Raster:
    return decode(data, LIMIT, Finish.AS_STORED)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".gif", ".tif"])
def test_formats_are_decoded_to_their_size_and_colour(suffix: str) -> None:
    raster = _vllm(drawn.vips(drawn.plain(60, 40), suffix))
    assert (raster.width, raster.height) == (60, 40)
    assert all(abs(seen - drawn_as) <= 6 for seen, drawn_as in zip(raster.mean_rgb, drawn.RED, strict=True))


def test_a_bitmap_is_decoded() -> None:
    raster = _vllm(drawn.bmp(30, 20))
    assert (raster.format, raster.width, raster.height, raster.mean_rgb) == ("bmp", 30, 20, drawn.RED)


def test_grey_and_16_bit_become_8_bit_rgb() -> None:
    grey = pyvips.Image.new_from_array(numpy.full((20, 30), 100, dtype=numpy.uint8)).write_to_buffer(".png")
    deep = pyvips.Image.new_from_array(numpy.full((20, 30, 3), 100 << 8, dtype=numpy.uint16))
    deep_png = deep.copy(interpretation="rgb16").write_to_buffer(".png")
    assert _vllm(bytes(grey)).mean_rgb == (100, 100, 100)
    assert _vllm(bytes(deep_png)).mean_rgb == (100, 100, 100)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_only_vllm_turns_a_picture_upright(orientation: int) -> None:
    data = drawn.turned_jpeg(80, 40, orientation)
    upright, stored = _vllm(data), _sglang(data)
    assert upright.orientation == orientation
    assert (upright.stored_width, upright.stored_height) == (80, 40)
    assert (upright.width, upright.height) == ((40, 80) if orientation >= 5 else (80, 40))
    assert (stored.width, stored.height) == (80, 40)
    assert upright.fingerprint != stored.fingerprint


def test_a_senseless_orientation_is_none() -> None:
    raster = _vllm(drawn.turned_jpeg(80, 40, 9))
    assert (raster.orientation, raster.width) == (1, 80)


def test_transparency_is_white_for_vllm_and_dropped_by_sglang() -> None:
    clear = numpy.zeros((20, 20, 4), dtype=numpy.uint8)
    data = drawn.vips(clear, ".png")
    assert _vllm(data).mean_hex == "#ffffff"
    assert _sglang(data).mean_hex == "#000000"


def test_fine_stripes_average_to_grey() -> None:
    stripes = numpy.zeros((256, 256, 3), dtype=numpy.uint8)
    stripes[::2] = 255
    assert all(120 <= value <= 136 for value in _vllm(drawn.vips(stripes, ".png")).mean_rgb)


def test_the_fingerprint_is_of_pixels_and_not_of_files() -> None:
    pixels = drawn.marked(64, 48)
    loose, tight = drawn.vips(pixels, ".png", compression=1), drawn.vips(pixels, ".png", compression=9)
    assert loose != tight
    assert _vllm(loose).fingerprint == _vllm(tight).fingerprint
    assert _vllm(loose).fingerprint != _vllm(drawn.png(64, 48)).fingerprint


@pytest.mark.parametrize("cut_bytes", [2, 40])
def test_a_jpeg_that_ends_early_is_refused(cut_bytes: int) -> None:
    with pytest.raises(UnreadableImageError, match="image file is truncated"):
        _vllm(drawn.jpeg(200, 200)[:-cut_bytes])


@pytest.mark.parametrize("data", [drawn.png(200, 200)[:-200], drawn.bmp(30, 20)[:-100]])
def test_other_files_that_end_early_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableImageError):
        _vllm(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a picture at all",
        b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
        b"%PDF-1.4\n%%EOF",
        b"BM",
    ],
)
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableImageError):
        _vllm(data)


def test_a_bomb_is_refused_by_its_header() -> None:
    with pytest.raises(OversizedImageError, match=r"Image size \(180000000 pixels\) exceeds limit"):
        _vllm(drawn.huge_png_header(20_000, 9_000))
    with pytest.raises(OversizedImageError):
        _vllm(b"GIF89a\xff\xff\xff\xff" + bytes(20))
    with pytest.raises(OversizedImageError):
        decode(drawn.bmp(30, 20), 599, Finish.UPRIGHT_ON_WHITE)
