from __future__ import annotations

import numpy as np
import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.jpeg import decode_jpeg
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.probe import probe_all
from gateway.types import Size
from tests.media.codecs.samples import BLUE, GREEN, RED, YELLOW, corners, jpeg, near, quarters

NOISE = np.random.default_rng(6).integers(0, 255, (128, 160, 3), np.uint8)


def decoded(data: bytes, at_least: Size | None = None) -> Raster:
    probe = probe_all(data)
    return decode_jpeg(data, probe, at_least or probe.raster)


@pytest.mark.parametrize("progressive", [False, True])
def test_colours_come_out(progressive: bool) -> None:
    raster = decoded(jpeg(progressive=progressive))
    assert near(corners(raster.samples[:, :, :3]), [RED, GREEN, BLUE, YELLOW], 2)
    assert (raster.samples.shape[2], raster.alpha, raster.grey) == (4, False, False)


def test_grey_is_known_as_grey() -> None:
    raster = decoded(jpeg(mode="L"))
    assert raster.grey
    assert (raster.samples[:, :, 0] == raster.samples[:, :, 2]).all()


def test_four_colours_are_read_inverted_as_everybody_stores_them() -> None:
    assert near(corners(decoded(jpeg(mode="CMYK")).samples[:, :, :3]), [RED, GREEN, BLUE, YELLOW], 4)


@pytest.mark.parametrize(("at_least", "size"), [(Size(80, 64), Size(80, 64)), (Size(39, 32), Size(40, 32))])
def test_shrinking_delivers_exact_halves_and_quarters(at_least: Size, size: Size) -> None:
    assert decoded(jpeg(NOISE), at_least).size == size


def test_odd_sides_are_rounded_up() -> None:
    assert decoded(jpeg(NOISE[:127, :159]), Size(39, 31)).size == Size(40, 32)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.7, 0.9, 0.97])
def test_cut_data_is_never_a_picture(share: float, progressive: bool) -> None:
    data = jpeg(NOISE, progressive=progressive)
    probe = probe_all(data)
    cut = data[: int(len(data) * share)]
    for end in (b"", b"\xff\xd9"):
        with pytest.raises(Undecodable):
            decode_jpeg(cut + end, probe, probe.raster)


def test_damaged_entropy_data_is_never_a_picture() -> None:
    data = bytearray(jpeg(NOISE))
    middle = len(data) // 2
    data[middle : middle + 200] = b"\xff\xd3" * 100
    with pytest.raises(Undecodable) as caught:
        decoded(bytes(data))
    assert caught.value.detail


def test_stray_bytes_before_the_end_mark_are_forgiven() -> None:
    data = jpeg(quarters(640, 320))
    assert near(corners(decoded(data[:-2] + bytes(4) + data[-2:]).samples[:, :, :3]), [RED, GREEN, BLUE, YELLOW], 2)


def test_a_header_that_changed_its_mind_is_undecodable() -> None:
    probe = probe_all(jpeg())
    with pytest.raises(Undecodable):
        decode_jpeg(jpeg(NOISE), probe, probe.raster)
