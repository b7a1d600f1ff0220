from __future__ import annotations

import numpy as np
import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.flat import decode_gif, decode_still_webp
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.probe import probe_all
from gateway.types import Size
from tests.media.codecs.samples import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    corners,
    gif,
    gif_frame,
    near,
    quarters,
    webp,
)

FULL = (0, 0, 64, 32)
COLOURS = [RED, GREEN, BLUE, YELLOW]


def decoded_gif(data: bytes) -> Raster:
    return decode_gif(data, probe_all(data))


def test_webp_comes_in_four_bands_whether_transparent_or_not() -> None:
    opaque = webp(lossless=True)
    raster = decode_still_webp(opaque, probe_all(opaque))
    assert (raster.samples.shape, raster.alpha) == ((32, 64, 4), False)
    assert corners(raster.samples[:, :, :3]) == COLOURS
    clear = webp(np.dstack((quarters(), np.zeros((32, 64), np.uint8))), lossless=True)
    assert decode_still_webp(clear, probe_all(clear)).alpha
    lossy = webp()
    assert near(corners(decode_still_webp(lossy, probe_all(lossy)).samples[:, :, :3]), COLOURS, 8)


@pytest.mark.parametrize("lossless", [False, True])
def test_damaged_webp_is_undecodable(lossless: bool) -> None:
    data = webp(np.random.default_rng(7).integers(0, 255, (64, 64, 3), np.uint8), lossless=lossless)
    probe = probe_all(data)
    with pytest.raises(Undecodable):
        decode_still_webp(data[:60] + bytes(len(data) - 60), probe) if lossless else decode_still_webp(data[:60], probe)


def test_the_first_frame_of_a_gif_is_taken() -> None:
    raster = decoded_gif(gif(gif_frame(FULL, 0, disposal=2), gif_frame(FULL, 1)))
    assert corners(raster.samples) == [RED] * 4
    assert not raster.alpha


def test_the_canvas_beside_the_first_frame_is_transparent() -> None:
    raster = decoded_gif(gif(gif_frame((32, 0, 32, 32), 1)))
    assert raster.alpha
    assert [corner[3] for corner in corners(raster.samples)] == [0, 255, 0, 255]
    assert corners(raster.samples)[1][:3] == GREEN


def test_a_transparent_colour_is_transparent() -> None:
    raster = decoded_gif(gif(gif_frame((0, 0, 32, 32), 2, transparent=2)))
    assert raster.samples[:, :, 3].max() == 0


def test_a_frame_beyond_the_canvas_enlarges_it() -> None:
    raster = decoded_gif(gif(gif_frame((48, 16, 64, 32), 1)))
    assert raster.size == Size(112, 48)
    assert raster.samples[40, 100].tolist() == [*GREEN, 255]


def test_gif_data_that_ends_early_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        decoded_gif(gif(gif_frame(FULL, 1, pixels=64 * 16)))


def test_later_frames_are_not_even_read() -> None:
    broken = gif_frame(FULL, 1)[:-3] + b"\x09\x00\x00"
    assert corners(decoded_gif(gif(gif_frame(FULL, 0), broken)).samples) == [RED] * 4
