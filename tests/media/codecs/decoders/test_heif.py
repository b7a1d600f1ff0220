from __future__ import annotations

import struct

import imagecodecs
import numpy as np
import pytest

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders import heif
from gateway.media.codecs.decoders.heif import decode_avif, decode_heic
from gateway.media.codecs.probe import probe_all
from tests.media.codecs.samples import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    avif,
    corners,
    deep_quarters,
    heic,
    near,
    quarters,
    with_property,
)

COLOURS = [RED, GREEN, BLUE, YELLOW]
RGBA = np.dstack((quarters(), np.full((32, 64), 128, np.uint8)))


@pytest.mark.parametrize("bits", [8, 10, 12])
def test_avif_of_every_depth(bits: int) -> None:
    shown = quarters() if bits == 8 else deep_quarters(bits)
    data = avif(shown, bits)
    assert near(corners(decode_avif(data, probe_all(data)).samples), COLOURS, 4)


def test_avif_keeps_grey_and_transparency() -> None:
    grey, clear = avif(quarters()[:, :, 0]), avif(RGBA)
    assert decode_avif(grey, probe_all(grey)).grey
    raster = decode_avif(clear, probe_all(clear))
    assert raster.alpha
    assert (raster.samples[:, :, 3] == 128).all()


def test_avif_comes_as_stored() -> None:
    data = with_property(avif(), b"irot", b"\1")
    assert near(corners(decode_avif(data, probe_all(data)).samples), COLOURS, 4)


def test_of_an_animated_avif_the_primary_picture_is_taken() -> None:
    flat = [np.full((32, 64, 3), level, np.uint8) for level in (200, 100, 50)]
    data = bytes(imagecodecs.avif_encode(np.stack(flat), level=95))
    probe = probe_all(data)
    raster = decode_avif(data, probe)
    assert (probe.frames, raster.size) == (3, probe.raster)
    assert near(corners(raster.samples[:, :, :3]), [(200, 200, 200)] * 4, 4)


def test_heic_comes_cropped_and_upright() -> None:
    plain = heic()
    assert near(corners(decode_heic(plain, probe_all(plain)).samples), COLOURS, 4)
    turned = with_property(plain, b"irot", b"\1")
    raster = decode_heic(turned, probe_all(turned))
    assert raster.samples.shape[:2] == (64, 32)
    assert near(corners(raster.samples), [GREEN, YELLOW, RED, BLUE], 4)
    mirrored = with_property(plain, b"imir", b"\0")
    assert near(corners(decode_heic(mirrored, probe_all(mirrored)).samples), [BLUE, YELLOW, RED, GREEN], 4)
    smaller = plain.replace(struct.pack(">4I", 64, 1, 32, 1), struct.pack(">4I", 40, 1, 20, 1))
    assert decode_heic(smaller, probe_all(smaller)).samples.shape[:2] == (20, 40)


def test_heic_keeps_grey_and_transparency() -> None:
    grey, clear = heic(np.ascontiguousarray(quarters()[:, :, 0])), heic(RGBA)
    assert decode_heic(grey, probe_all(grey)).grey
    assert decode_heic(clear, probe_all(clear)).alpha


@pytest.mark.parametrize("name", ["avif", "heic"])
def test_damaged_data_is_undecodable(name: str) -> None:
    data = {"avif": avif, "heic": heic}[name]()
    decode = {"avif": decode_avif, "heic": decode_heic}[name]
    at = data.index(b"mdat") + 4
    damaged = data[:at] + b"\xff" * (len(data) - at)
    with pytest.raises(Undecodable):
        decode(damaged, probe_all(damaged))
    with pytest.raises(Undecodable):
        decode(data[: at - 30], probe_all(data))


def test_without_its_decoder_heic_is_refused_and_still_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heif, "_pillow_heif", None)
    data = heic()
    assert probe_all(data).raster.width == 64
    with pytest.raises(UnsupportedFormat, match=r"without its decoder \(extra heif\)"):
        decode_heic(data, probe_all(data))
