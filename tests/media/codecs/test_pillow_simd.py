from __future__ import annotations

import importlib

import numpy as np
import PIL
import pytest

from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.pipeline import ResizeJob
from gateway.types import Size
from tests.media.codecs.samples import Pixels, corners, quarters

pillow_simd = importlib.import_module("gateway.media.codecs.pillow_simd")
SIMD = ".post" in PIL.__version__
GROUND = (10, 20, 30)


def wide(pixels: Pixels, fourth: int) -> Pixels:
    return np.dstack((pixels, np.full(pixels.shape[:2], fourth, np.uint8)))


def test_loads_only_where_pil_is_pillow_simd() -> None:
    if SIMD:
        assert pillow_simd.load().name == "pillow-simd"
    else:
        with pytest.raises(ImportError):
            pillow_simd.load()


def test_four_bytes_a_pixel_are_not_copied() -> None:
    raster = Raster(wide(quarters(), 0))
    image = pillow_simd.flattened(ResizeJob(raster, raster.size, GROUND))
    assert (image.mode, image.readonly) == ("RGBX", 1)
    raster.samples[0, 0] = 7
    assert image.getpixel((0, 0))[:3] == (7, 7, 7)


def test_padding_is_no_transparency_and_transparency_is() -> None:
    padded = pillow_simd.resize(ResizeJob(Raster(wide(quarters(), 0)), Size(32, 16), GROUND))
    clear = pillow_simd.resize(ResizeJob(Raster(wide(quarters(), 0), alpha=True), Size(32, 16), GROUND))
    assert corners(np.asarray(padded.convert("RGB"))) == corners(quarters())
    assert corners(np.asarray(clear)) == [GROUND] * 4


@pytest.mark.parametrize("bands", [1, 3, 4])
@pytest.mark.parametrize("target", [Size(64, 32), Size(20, 20)])
def test_a_grey_job_ends_in_grey(bands: int, target: Size) -> None:
    samples = np.full((32, 64, bands), 90, np.uint8)
    image = pillow_simd.resize(ResizeJob(Raster(samples, grey=True), target, GROUND))
    assert (image.mode, image.size) == ("L", (target.width, target.height))
    assert image.getextrema() == (90, 90)


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (7, 3), (64, 32)])
def test_a_fourth_byte_changes_no_other(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(3).integers(0, 255, (size[1], size[0], 3), np.uint8)
    widened = pillow_simd.four_bytes(pixels)
    assert widened.shape == (size[1], size[0], 4)
    assert (widened[:, :, :3] == pixels).all()
