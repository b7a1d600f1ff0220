from __future__ import annotations

import struct

import numpy as np
import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.jpeg2000 import decode_jpeg2000
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.probe import probe_all
from tests.media.codecs.samples import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    Pixels,
    box,
    corners,
    deep_quarters,
    jpeg2000,
    near,
    quarters,
)

COLOURS = [RED, GREEN, BLUE, YELLOW]


def decoded(data: bytes) -> Raster:
    return decode_jpeg2000(data, probe_all(data))


@pytest.mark.parametrize("kind", ["jp2", "j2k"])
@pytest.mark.parametrize("bits", [8, 12, 16])
def test_depths(kind: str, bits: int) -> None:
    shown = quarters() if bits == 8 else deep_quarters(bits)
    assert corners(decoded(jpeg2000(shown, kind, bits)).samples) == COLOURS


def test_few_bits_are_spread_over_the_whole_range() -> None:
    levels: Pixels = np.repeat(np.arange(16, dtype=np.uint8), 4)[None, :].repeat(32, axis=0)
    raster = decoded(jpeg2000(levels, bits=4))
    assert raster.grey
    assert raster.samples[0, ::4, 0].tolist() == [level * 17 for level in range(16)]


def test_transparency() -> None:
    raster = decoded(jpeg2000(np.dstack((quarters(), np.full((32, 64), 90, np.uint8)))))
    assert raster.alpha
    assert (raster.samples[:, :, 3] == 90).all()


def recoloured(file: bytes, space: int) -> bytes:
    return file.replace(b"colr\1\0\0" + struct.pack(">I", 16), b"colr\1\0\0" + struct.pack(">I", space))


def test_ycc_becomes_rgb() -> None:
    flat = np.full((32, 64, 3), (76, 85, 255), np.uint8)  # red, by BT.601
    assert near(corners(decoded(recoloured(jpeg2000(flat), 18)).samples), [(255, 0, 0)] * 4, 2)


def test_inks_become_rgb() -> None:
    inks = np.full((32, 64, 4), (0, 255, 255, 0), np.uint8)
    file = jpeg2000(inks)
    assert corners(decoded(recoloured(file, 12)).samples) == [(255, 0, 0)] * 4


def test_palettes_are_expanded() -> None:
    index: Pixels = (np.indices((32, 64))[1] % 2).astype(np.uint8)
    file = jpeg2000(index)
    at = file.index(b"jp2h") - 4
    (length,) = struct.unpack_from(">I", file, at)
    palette = box(b"pclr", struct.pack(">HB", 2, 3) + bytes((7, 7, 7, *RED, *BLUE)))
    mapping = box(b"cmap", b"".join(struct.pack(">HBB", 0, 1, column) for column in range(3)))
    inside = file[at + 8 : at + length].replace(struct.pack(">I", 17), struct.pack(">I", 16)) + palette + mapping
    raster = decoded(file[:at] + box(b"jp2h", inside) + file[at + length :])
    assert [tuple(map(int, pixel)) for pixel in raster.samples[0, :2]] == [RED, BLUE]


def test_damaged_or_cut_data_is_undecodable() -> None:
    noise = np.random.default_rng(3).integers(0, 255, (32, 64, 3), np.uint8)
    data = jpeg2000(noise)
    probe = probe_all(data)
    for damaged in (data[: len(data) // 2], data[:300] + b"\xff" * 20):
        with pytest.raises(Undecodable):
            decode_jpeg2000(damaged, probe)
