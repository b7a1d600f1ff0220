from __future__ import annotations

import struct

import numpy as np
import pytest

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.jpeg import probe_jpeg
from gateway.media.codecs.probe.window import NeedMore, Window
from gateway.types import ColourModel, Probe, Size
from tests.media.codecs.samples import exif, jpeg, oriented_jpeg, quarters, segment, with_segments

COM = 0xFE


def whole(data: bytes) -> Probe:
    return probe_jpeg(Window(data, data, len(data)))


def parted(data: bytes, head_bytes: int, tail_bytes: int) -> Probe:
    return probe_jpeg(Window(data[:head_bytes], data[-tail_bytes:], len(data)))


@pytest.mark.parametrize(
    ("mode", "colour"), [("L", ColourModel.GREY), ("RGB", ColourModel.RGB), ("CMYK", ColourModel.CMYK)]
)
def test_components_tell_the_colour(mode: str, colour: ColourModel) -> None:
    found = whole(jpeg(mode=mode))
    assert (found.raster, found.colour, found.complete, found.scans) == (Size(64, 32), colour, True, 1)


def test_orientation_swaps_the_sides() -> None:
    for orientation in range(1, 9):
        found = whole(oriented_jpeg(orientation, ">"))
        assert found.orientation == orientation
        assert found.upright == (Size(32, 64) if orientation >= 5 else Size(64, 32))


def test_exif_is_found_behind_other_segments_and_the_first_one_counts() -> None:
    metadata = segment(0xE1, b"Exif\0\0" + exif(6))
    icc = segment(0xE2, b"ICC_PROFILE\0" + bytes(60_000))
    assert whole(with_segments(jpeg(), icc, segment(COM, b"note"), metadata)).orientation == 6
    assert whole(with_segments(jpeg(), metadata, segment(0xE1, b"Exif\0\0" + exif(3)))).orientation == 6


def test_xmp_tells_where_exif_does_not() -> None:
    packet = b'http://ns.adobe.com/xap/1.0/\0<r tiff:Orientation="8"/>'
    assert whole(with_segments(jpeg(), segment(0xE1, packet))).orientation == 8


def test_broken_exif_leaves_the_picture_as_stored() -> None:
    assert whole(with_segments(jpeg(), segment(0xE1, b"Exif\0\0MM\0*\xff\xff\xff\xff"))).orientation == 1


def test_progressive_scans_are_counted() -> None:
    data = jpeg(np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8), progressive=True)
    found = whole(data)
    assert found.progressive
    assert found.scans == data.count(b"\xff\xda") > 3
    scan = data[data.rfind(b"\xff\xda") : -2]
    assert whole(data[:-2] + 400 * scan + data[-2:]).scans == found.scans + 400


def test_an_end_mark_anywhere_behind_the_first_scan_makes_a_file_complete() -> None:
    data = jpeg()
    assert whole(data + bytes(5_000)).complete
    assert whole(data + data).complete
    assert not whole(data[:-2]).complete
    assert not whole(data[: data.find(b"\xff\xda") + 20]).complete


def test_an_end_mark_of_a_preview_does_not_count() -> None:
    preview = segment(0xE1, b"Exif\0\0" + exif(1) + jpeg())
    assert not whole(with_segments(jpeg(), preview)[:-2]).complete


def test_parts_suffice_when_header_and_end_are_in_them() -> None:
    data = jpeg(np.random.default_rng(1).integers(0, 255, (256, 256, 3), np.uint8))
    assert parted(data, 2_000, 100) == whole(data)


def test_more_is_asked_for_when_parts_do_not_tell() -> None:
    data = jpeg(np.random.default_rng(1).integers(0, 255, (256, 256, 3), np.uint8))
    far = with_segments(data, segment(0xE2, bytes(60_000)), segment(0xE2, bytes(60_000)))
    for file, head_bytes in (
        (far, 100_000),
        (data + bytes(5_000), 2_000),
        (jpeg(progressive=True) + bytes(9_000), 3_000),
    ):
        with pytest.raises(NeedMore) as caught:
            parted(file, head_bytes, 100)
        assert caught.value.bytes_wanted == len(file)


def test_fill_bytes_and_stray_bytes_between_segments_are_skipped() -> None:
    data = jpeg()
    assert whole(data[:2] + b"\xff\xff\xff" + data[3:]).raster == Size(64, 32)
    assert whole(data[:2] + b"\0\0stray\xff\0" + data[2:]).raster == Size(64, 32)


def test_headers_that_lead_nowhere_are_undecodable() -> None:
    data = jpeg()
    for broken in (data[:2], data[:20], b"\xff\xd8\xff\xd9", b"\xff\xd8\xff\xe0\0\0", b"\xff\xd8" + bytes(500)):
        with pytest.raises(Undecodable):
            whole(broken)
    with pytest.raises(Undecodable, match="no frame header"):
        whole(b"\xff\xd8" + segment(0xDA, b"\x01\x01\0\0\x3f\0"))


def frame(width: int, height: int, components: int = 3, bits: int = 8, marker: int = 0xC0) -> bytes:
    sof = segment(marker, struct.pack(">BHHB", bits, height, width, components) + bytes(3 * components))
    return b"\xff\xd8" + sof + segment(0xDA, bytes((components,)) + bytes(3 + 2 * components)) + b"\xff\xd9"


def test_frames_without_area_or_with_odd_components_are_undecodable() -> None:
    for broken in (frame(0, 5), frame(5, 0), frame(5, 5, components=2)):
        with pytest.raises(Undecodable):
            whole(broken)


def test_kinds_without_a_decoder_are_refused_by_name() -> None:
    for odd in (frame(5, 5, bits=12), frame(5, 5, marker=0xC3), frame(5, 5, marker=0xC5)):
        with pytest.raises(UnsupportedFormat):
            whole(odd)


def test_a_baseline_file_of_several_scans_is_counted_too() -> None:
    sof = segment(0xC0, struct.pack(">BHHB", 8, 5, 5, 3) + bytes(9))
    scan = segment(0xDA, b"\x01\x01\0\0\x3f\0")
    assert whole(b"\xff\xd8" + sof + 500 * scan + b"\xff\xd9").scans == 500


def test_the_number_of_segments_is_bounded() -> None:
    with pytest.raises(Undecodable, match="too many segments"):
        whole(b"\xff\xd8" + segment(COM, b"") * 5_000 + jpeg(quarters())[2:])
