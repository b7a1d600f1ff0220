from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe import probe_all
from gateway.media.codecs.probe.ico import chosen_entry
from gateway.types import ColourModel, ImageFormat, Size
from tests.media.codecs.samples import png, quarters


def dib(width: int, height: int, bits: int, compression: int = 0, colours: int = 0) -> bytes:
    """A DIB header as icons have it, its height that of picture and mask together."""
    return struct.pack("<IiiHHIIiiII", 40, width, 2 * height, 1, bits, compression, 0, 0, 0, colours, 0)


def icon(*pictures: tuple[int, int, int, bytes]) -> bytes:
    """An icon of pictures given as sides and bits of the directory, and their bytes."""
    at = 6 + 16 * len(pictures)
    directory = b""
    for width, height, bits, data in pictures:
        directory += struct.pack("<BBBBHHII", width % 256, height % 256, 0, 0, 1, bits, len(data), at)
        at += len(data)
    return struct.pack("<HHH", 0, 1, len(pictures)) + directory + b"".join(data for *_, data in pictures)


SMALL = (16, 16, 32, dib(16, 16, 32) + bytes(16 * 16 * 4 + 64))
LARGE = (64, 32, 32, png(quarters()))
ICON = icon(SMALL, LARGE)


def test_the_largest_picture_counts_with_its_own_size() -> None:
    found = probe_all(ICON)
    assert (found.format, found.raster, found.has_alpha, found.complete) == (ImageFormat.ICO, Size(64, 32), False, True)
    assert chosen_entry(ICON).header is None
    lying = icon((200, 200, 32, dib(16, 16, 32) + bytes(2_000)), LARGE)
    assert probe_all(lying).raster == Size(16, 16)


def test_a_bitmap_has_half_its_stated_height_and_a_mask() -> None:
    found = probe_all(icon(SMALL))
    assert (found.raster, found.has_alpha, found.complete) == (Size(16, 16), True, True)
    assert probe_all(icon((16, 16, 8, dib(16, 16, 8) + bytes(2_000)))).colour is ColourModel.PALETTE
    assert not probe_all(icon((16, 16, 32, dib(16, 16, 32) + bytes(100)))).complete


def test_of_equal_sizes_the_one_with_most_colours_counts() -> None:
    palette = (16, 16, 8, dib(16, 16, 8) + bytes(2_000))
    assert probe_all(icon(palette, SMALL)).colour is ColourModel.RGB


def test_a_side_of_zero_in_the_directory_is_256() -> None:
    assert probe_all(icon(SMALL, (256, 256, 32, png(quarters())))).raster == Size(64, 32)


def test_what_is_not_decoded_is_named() -> None:
    for header in (dib(16, 16, 8, compression=1), dib(16, 16, 16)):
        with pytest.raises(UnsupportedFormat, match="Icons"):
            probe_all(icon((16, 16, 8, header + bytes(2_000))))


@pytest.mark.parametrize("file", [ICON[:20], icon(), b"\0\0\1\0\1\0" + bytes(16), ICON[:40]])
def test_directories_without_sense_are_undecodable(file: bytes) -> None:
    with pytest.raises(Undecodable):
        probe_all(file)
    with pytest.raises(Undecodable):
        chosen_entry(file)


@given(st.integers(0, 120), st.binary(min_size=1, max_size=12))
def test_damage_is_refused_in_documented_words(at: int, junk: bytes) -> None:
    try:
        found = probe_all(ICON[:4] + (ICON[:at] + junk + ICON[at + len(junk) :])[4:])
    except (Undecodable, UnsupportedFormat):
        return
    assert found.raster.pixels > 0
