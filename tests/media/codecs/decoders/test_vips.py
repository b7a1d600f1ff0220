from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.decoders.vips import decode_page, load_vips
from gateway.media.codecs.probe import probe_all
from gateway.types import ColourModel, ImageFormat, Probe, Size
from tests.media.codecs.samples import (
    BLUE,
    GREEN,
    RED,
    YELLOW,
    Pixels,
    adam7,
    bitstream,
    chunk,
    corners,
    grey_tiff,
    near,
    packed_png,
    png,
    png_file,
    quarters,
    riff,
    saved,
    scanlines,
    tiff,
    vp8x,
    webp,
)

COLOURS = [RED, GREEN, BLUE, YELLOW]
NOISE = np.random.default_rng(8).integers(0, 255, (33, 61, 3), np.uint8)


def decoded(data: bytes) -> Raster:
    return decode_page(data, probe_all(data))


def test_an_opaque_png_comes_padded_to_four_bytes() -> None:
    raster = decoded(png(NOISE))
    assert (raster.samples.shape[2], raster.alpha) == (4, False)
    assert (raster.samples[:, :, :3] == NOISE).all()


def test_interlaced_png() -> None:
    assert (decoded(adam7(NOISE)).samples[:, :, :3] == NOISE).all()


@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_16_bit_png_keeps_the_high_byte(bands: int) -> None:
    deep = np.repeat(np.arange(0, 64, dtype=np.uint16)[None, :, None] * 1_024 + 77, 8, axis=0).repeat(bands, axis=2)
    raster = decoded(png(deep))
    assert raster.grey is (bands <= 2)
    assert raster.alpha is (bands in (2, 4))
    assert raster.samples[3, :, 0].tolist() == [value * 4 for value in range(64)]


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_packed_grey_is_spread_over_the_whole_range(bits: int) -> None:
    values = np.arange(64, dtype=np.uint8).reshape(4, 16) % 2**bits
    scale = 255 // (2**bits - 1)
    assert (decoded(packed_png(values, bits, 0)).samples[:, :, 0] == values * scale).all()


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_palettes_are_expanded_with_their_transparency(bits: int) -> None:
    values = np.arange(64, dtype=np.uint8).reshape(4, 16) % 2**bits
    palette = chunk(b"PLTE", bytes(range(3 * 2**bits)))
    raster = decoded(packed_png(values, bits, 3, palette + chunk(b"tRNS", b"\0\x80")))
    assert raster.alpha
    assert raster.samples[0, 0].tolist() == [0, 1, 2, 0]
    assert raster.samples[0, 1].tolist() == [3, 4, 5, 128]
    assert not decoded(packed_png(values, bits, 3, palette)).alpha


def test_a_transparent_key_colour_is_transparent() -> None:
    raster = decoded(png(before=chunk(b"tRNS", struct.pack(">HHH", *GREEN))))
    assert [corner[3] for corner in corners(raster.samples)] == [255, 0, 255, 255]


def test_of_an_animated_png_the_default_image_is_taken() -> None:
    control = chunk(b"acTL", struct.pack(">II", 2, 0))
    frame = chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, 64, 32, 0, 0, 1, 10, 0, 0))
    other = chunk(b"fdAT", struct.pack(">I", 1) + bytes(20))
    assert corners(decoded(png(before=control, after=frame + other)).samples[:, :, :3]) == COLOURS


def raw_rows(pixels: Pixels) -> bytes:
    return scanlines(pixels)


def test_png_data_short_of_its_header_is_undecodable() -> None:
    rows = raw_rows(quarters())
    for raw in (rows[:-1], rows[: len(rows) // 2], b"\x09" + rows[1:]):
        with pytest.raises(Undecodable):
            decoded(png_file((64, 32), 8, 2, raw))


def test_png_data_beyond_its_header_is_not_even_inflated() -> None:
    bomb = png_file((64, 32), 8, 2, raw_rows(quarters()) + bytes(50_000_000))
    assert corners(decoded(bomb).samples[:, :, :3]) == COLOURS


def test_a_damaged_checksum_is_undecodable() -> None:
    data = bytearray(png(NOISE))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(Undecodable):
        decoded(bytes(data))


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "CMYK"])
def test_colour_tiff(mode: str) -> None:
    raster = decoded(saved(quarters(), mode, "TIFF"))
    assert corners(raster.samples[:, :, :3]) == COLOURS
    assert raster.alpha is (mode == "RGBA")


@pytest.mark.parametrize("mode", ["1", "L"])
def test_grey_tiff_stays_grey(mode: str) -> None:
    raster = decoded(saved(quarters(), mode, "TIFF"))
    assert (raster.samples.shape[2], raster.grey) == (1, True)
    assert raster.samples.max() > 190


def test_a_fourth_sample_of_unstated_meaning_is_no_transparency() -> None:
    data = saved(quarters(), "RGBA", "TIFF")
    stated = struct.pack("<HHIHH", 338, 3, 1, 2, 0)
    assert stated in data
    assert not decoded(data.replace(stated, struct.pack("<HHIHH", 338, 3, 1, 0, 0))).alpha


def test_colours_multiplied_by_their_transparency_are_divided_again() -> None:
    rgba = np.dstack((quarters() // 2, np.full((32, 64), 128, np.uint8)))
    unstated = saved(rgba, "RGBA", "TIFF")
    associated = unstated.replace(struct.pack("<HHIHH", 338, 3, 1, 2, 0), struct.pack("<HHIHH", 338, 3, 1, 1, 0))
    assert near(corners(decoded(associated).samples[:, :, :3]), COLOURS, 3)
    assert corners(decoded(unstated).samples) == corners(rgba)


def test_a_cut_tiff_is_undecodable() -> None:
    data = grey_tiff(64, 64)
    with pytest.raises(Undecodable):
        decode_page(data[:-3_000], probe_all(data))


def test_a_strip_that_inflates_to_less_than_its_rows_is_undecodable() -> None:
    packed = zlib.compress(bytes(range(256)) * 8)
    tags = [(256, 3, 1, 64), (257, 3, 1, 64), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (273, 4, 1, -1)]
    data = tiff([*tags, (277, 3, 1, 1), (278, 3, 1, 64), (279, 4, 1, len(packed))], packed)
    assert probe_all(data).complete
    with pytest.raises(Undecodable):
        decoded(data)


def test_samples_that_are_not_small_integers_are_refused() -> None:
    floats = saved(quarters(), "F", "TIFF")
    probe = Probe(ImageFormat.TIFF, Size(64, 32), colour=ColourModel.GREY)
    with pytest.raises(UnsupportedFormat):
        decode_page(floats, probe)


def test_an_animated_webp_gives_its_first_frame_on_its_canvas() -> None:
    name, data = bitstream(webp(lossless=True))
    frame = bytes(6) + (63).to_bytes(3, "little") + (31).to_bytes(3, "little") + (100).to_bytes(3, "little") + b"\0"
    picture = name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)
    file = riff(vp8x((64, 32), 0x02), (b"ANIM", bytes(6)), (b"ANMF", frame + picture), (b"ANMF", frame + picture))
    assert probe_all(file).frames == 2
    assert corners(decoded(file).samples[:, :, :3]) == COLOURS


def test_untrusted_loaders_are_blocked_and_nothing_is_cached() -> None:
    vips = load_vips()
    with pytest.raises(vips.Error):
        vips.Image.svgload_buffer(b"<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>")
    assert vips.cache_get_max() == 0
