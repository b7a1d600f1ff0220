from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.codecs.probe.exif import exif_orientation, orientation_of, sane, xmp_orientation
from tests.media.codecs.samples import exif


@pytest.mark.parametrize("endian", ["<", ">"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_reads_each_orientation_in_both_byte_orders(orientation: int, endian: str) -> None:
    assert exif_orientation(exif(orientation, endian)) == orientation
    assert exif_orientation(b"Exif\0\0" + exif(orientation, endian)) == orientation


@pytest.mark.parametrize("kind", [1, 4])
def test_bytes_and_longs_are_read_as_well_as_shorts(kind: int) -> None:
    assert exif_orientation(exif(6, "<", kind=kind)) == 6


@pytest.mark.parametrize("value", [0, 9, 255, 65_535])
def test_values_outside_1_to_8_mean_upright(value: int) -> None:
    assert exif_orientation(exif(value)) == 1
    assert sane(value) == 1


def test_odd_kinds_and_counts_mean_upright() -> None:
    assert exif_orientation(exif(6, kind=2)) == 1
    assert exif_orientation(exif(6, count=2)) == 1


def test_a_cut_or_missing_block_says_nothing() -> None:
    whole = exif(6)
    for length in range(len(whole) - 8):
        assert exif_orientation(whole[:length]) is None
    assert exif_orientation(b"XX*\0" + whole[4:]) is None
    assert exif_orientation(exif(6, entries_before=2_000)) is None


def test_xmp_is_read_where_exif_says_nothing() -> None:
    attribute, element = b'<x tiff:Orientation="8" y>', b"<tiff:Orientation>3</tiff:Orientation>"
    assert xmp_orientation(attribute) == 8
    assert xmp_orientation(element) == 3
    assert xmp_orientation(b"nothing") is None
    assert orientation_of(exif(6), attribute) == 6
    assert orientation_of(b"broken", attribute) == 8
    assert orientation_of(None, None) == 1


@given(st.binary(max_size=200))
def test_any_bytes_give_an_orientation_or_nothing(block: bytes) -> None:
    for prefix in (b"", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08"):
        assert orientation_of(prefix + block, block) in range(1, 9)
