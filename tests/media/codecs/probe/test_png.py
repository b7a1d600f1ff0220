from __future__ import annotations

import struct

import numpy as np
import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.probe.png import probe_png
from gateway.media.codecs.probe.window import NeedMore, Window
from gateway.types import ColourModel, Probe, Size
from tests.media.codecs.samples import chunk, exif, packed_png, png, png_file, quarters


def whole(data: bytes) -> Probe:
    return probe_png(Window(data, data, len(data)))


def facts(data: bytes) -> tuple[ColourModel, int, bool]:
    found = whole(data)
    return found.colour, found.bits_per_sample, found.has_alpha


GREY16 = np.zeros((32, 64), np.uint16)
NIBBLES = np.zeros((32, 64), np.uint8)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (png(), (ColourModel.RGB, 8, False)),
        (png(GREY16), (ColourModel.GREY, 16, False)),
        (png(np.zeros((32, 64, 2), np.uint8)), (ColourModel.GREY, 8, True)),
        (png(np.zeros((32, 64, 4), np.uint16)), (ColourModel.RGB, 16, True)),
        (packed_png(NIBBLES, 4, 3, chunk(b"PLTE", bytes(3))), (ColourModel.PALETTE, 4, False)),
        (packed_png(NIBBLES, 1, 0, chunk(b"tRNS", b"\0\0")), (ColourModel.GREY, 1, True)),
        (png(before=chunk(b"tRNS", bytes(6))), (ColourModel.RGB, 8, True)),
    ],
)
def test_ihdr_and_trns_tell_colour_depth_and_transparency(data: bytes, wanted: tuple[ColourModel, int, bool]) -> None:
    assert facts(data) == wanted
    assert whole(data).raster == Size(64, 32)


def test_exif_counts_before_and_behind_the_pixels() -> None:
    assert whole(png(before=chunk(b"eXIf", exif(6)))).upright == Size(32, 64)
    assert whole(png(after=chunk(b"eXIf", exif(8, ">")))).orientation == 8
    text = chunk(b"iTXt", b'XML:com.adobe.xmp\0\0\0\0\0<r tiff:Orientation="3"/>')
    assert whole(png(after=text)).orientation == 3
    assert whole(png(after=chunk(b"iTXt", b"Title\0"))).orientation == 1


def test_frames_come_from_actl_in_front_of_the_pixels() -> None:
    control = chunk(b"acTL", struct.pack(">II", 3, 0))
    assert whole(png(before=control)).frames == 3
    assert whole(png(after=control)).frames == 1
    assert whole(png(before=chunk(b"acTL", bytes(8)))).frames == 1


def test_a_file_is_complete_when_its_chunks_lead_to_iend() -> None:
    data = png()
    assert whole(data).complete
    assert whole(data + b"trailing bytes").complete
    for cut in (len(data) - 1, len(data) - 12, len(data) - 20, 40):
        assert not whole(data[:cut]).complete


def test_iend_inside_another_chunk_does_not_count() -> None:
    assert not whole(png(before=chunk(b"tEXt", chunk(b"IEND", b"")))[:-12]).complete


def test_headers_without_sense_are_undecodable() -> None:
    raw = bytes(9)
    bad = [png_file((0, 1), 8, 2, raw), png_file((1, 0), 8, 2, raw), png_file((2**31, 1), 8, 2, raw)]
    bad += [png_file((1, 1), 4, 2, raw), png_file((1, 1), 8, 5, raw), png_file((1, 1), 3, 0, raw)]
    bad += [png()[:20], png()[:8] + chunk(b"IDAT", b"") + png()[8:]]
    for data in bad:
        with pytest.raises(Undecodable):
            whole(data)


def test_a_header_that_its_data_cannot_fill_is_undecodable() -> None:
    with pytest.raises(Undecodable, match="far less pixel data"):
        whole(png_file((50_000, 50_000), 8, 2, bytes(3_000)))
    with pytest.raises(Undecodable, match="far less pixel data"):
        whole(png()[:33] + chunk(b"IEND", b""))


def test_data_at_the_limit_of_deflate_is_believed() -> None:
    assert whole(png(np.zeros((4_000, 1_000, 3), np.uint8))).complete


def test_the_number_of_chunks_is_bounded() -> None:
    with pytest.raises(Undecodable, match="too many chunks"):
        whole(png(before=chunk(b"tEXt", b"") * 140_000))


def test_parts_suffice_when_one_chunk_spans_the_gap() -> None:
    noise = np.random.default_rng(2).integers(0, 255, (100, 100, 3), np.uint8)
    data = png(noise, after=chunk(b"eXIf", exif(6)))
    assert probe_png(Window(data[:500], data[-200:], len(data))) == whole(data)


def test_more_is_asked_for_when_chunks_lie_between() -> None:
    data = png(before=chunk(b"tEXt", bytes(300)) * 9)
    with pytest.raises(NeedMore):
        probe_png(Window(data[:500], data[-200:], len(data)))


def test_quarters_are_what_other_tests_take_them_for() -> None:
    assert quarters().shape == (32, 64, 3)
