from __future__ import annotations

import numpy as np
import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.raster import Raster, raster_from
from gateway.types import Size

SIZE = Size(4, 2)


@pytest.mark.parametrize(
    ("shape", "bands", "alpha", "grey"),
    [((2, 4), 1, False, True), ((2, 4, 1), 1, False, True), ((2, 4, 3), 3, False, False), ((2, 4, 4), 4, True, False)],
)
def test_bands_tell_what_the_samples_are(shape: tuple[int, ...], bands: int, alpha: bool, grey: bool) -> None:
    raster = raster_from(np.zeros(shape, np.uint8), SIZE)
    assert (raster.samples.shape, raster.alpha, raster.grey) == ((2, 4, bands), alpha, grey)
    assert raster.size == SIZE


def test_grey_with_transparency_becomes_four_bands_and_stays_grey() -> None:
    samples = np.dstack((np.full((2, 4), 70, np.uint8), np.full((2, 4), 9, np.uint8)))
    raster = raster_from(samples, SIZE)
    assert (raster.alpha, raster.grey) == (True, True)
    assert raster.samples[0, 0].tolist() == [70, 70, 70, 9]


def test_16_bit_samples_keep_their_high_byte() -> None:
    samples = np.array([[0, 255, 256, 511], [512, 32_768, 65_280, 65_535]], np.uint16)
    assert raster_from(samples, SIZE).samples[:, :, 0].tolist() == [[0, 0, 1, 1], [2, 128, 255, 255]]


def test_further_bands_are_dropped() -> None:
    assert raster_from(np.zeros((2, 4, 6), np.uint8), SIZE).samples.shape == (2, 4, 3)


def test_another_size_than_the_headers_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        raster_from(np.zeros((4, 2, 3), np.uint8), SIZE)


def test_samples_are_contiguous_for_those_who_take_their_address() -> None:
    turned = np.zeros((4, 2, 3), np.uint8).transpose(1, 0, 2)
    assert raster_from(turned, SIZE).samples.flags.c_contiguous
    assert isinstance(raster_from(turned, SIZE), Raster)
