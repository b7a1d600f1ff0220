from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from gateway.media.codecs import vips_cubic
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.pipeline import ResizeJob
from gateway.types import Size
from tests.media.codecs.samples import corners, quarters

GROUND = (10, 20, 30)


def test_the_backend_carries_its_name() -> None:
    assert vips_cubic.load().name == "vips"


@pytest.mark.parametrize(("alpha", "shown"), [(False, corners(quarters())), (True, [GROUND] * 4)])
def test_padding_is_no_transparency_and_transparency_is(alpha: bool, shown: list[tuple[int, ...]]) -> None:
    samples = np.dstack((quarters(), np.zeros((32, 64), np.uint8)))
    image = vips_cubic.resize(ResizeJob(Raster(samples, alpha=alpha), Size(32, 16), GROUND))
    assert image.mode == "RGB"
    assert corners(np.asarray(image)) == shown


@pytest.mark.parametrize("bands", [1, 3, 4])
def test_a_grey_job_ends_in_grey(bands: int) -> None:
    samples = np.full((32, 64, bands), 90, np.uint8)
    image = vips_cubic.resize(ResizeJob(Raster(samples, grey=True), Size(20, 20), GROUND))
    assert (image.mode, image.size, image.getextrema()) == ("L", (20, 20), (90, 90))


def test_sizes_are_exact_whatever_the_factor() -> None:
    pixels = Raster(np.random.default_rng(13).integers(0, 255, (101, 103, 3), np.uint8))
    for width in (1, 2, 7, 50, 51, 102, 104, 333):
        for height in (1, 3, 64, 100, 205):
            assert vips_cubic.resize(ResizeJob(pixels, Size(width, height), GROUND)).size == (width, height)


@pytest.mark.parametrize("target", [(56, 56), (56, 40), (40, 56), (56, 30), (30, 56), (42, 38)])
def test_what_grows_stays_in_its_place(target: tuple[int, int]) -> None:
    """Alone libvips shifts it by half a pixel: 13 dB on noise."""
    pixels = np.random.default_rng(1).integers(0, 255, (40, 40, 3), np.uint8)
    size = Size(*target)
    ours = np.asarray(vips_cubic.resize(ResizeJob(Raster(pixels), size, GROUND))).astype(np.float64)
    middle = Image.fromarray(pixels).resize((size.width, 40), Image.Resampling.BICUBIC)
    reference = np.asarray(middle.resize(target, Image.Resampling.BICUBIC)).astype(np.float64)
    assert 10 * np.log10(255**2 / max(float(np.mean((ours - reference) ** 2)), 1e-6)) >= 48
