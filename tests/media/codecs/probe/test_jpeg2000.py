from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe import probe_all
from gateway.media.codecs.probe.jpeg2000 import jpeg2000_profile
from gateway.types import ColourModel, ImageFormat, Size
from tests.media.codecs.samples import box, display_p3, jpeg2000, quarters

JP2, STREAM = jpeg2000(), jpeg2000(kind="j2k")
SRGB_BOX = box(b"colr", b"\1\0\0" + struct.pack(">I", 16))


def with_header_boxes(*boxes: bytes) -> bytes:
    """The file with these boxes where its colour box was."""
    at = JP2.index(b"jp2h") - 4
    (length,) = struct.unpack_from(">I", JP2, at)
    inside = JP2[at + 8 : at + length].replace(SRGB_BOX, b"".join(boxes))
    return JP2[:at] + box(b"jp2h", inside) + JP2[at + length :]


@pytest.mark.parametrize("file", [JP2, STREAM])
def test_size_and_depth(file: bytes) -> None:
    found = probe_all(file)
    assert (found.format, found.raster, found.bits_per_sample) == (ImageFormat.JPEG2000, Size(64, 32), 8)
    assert (found.colour, found.has_alpha, found.complete) == (ColourModel.RGB, False, True)


def test_grey_alpha_and_deep_samples() -> None:
    assert probe_all(jpeg2000(quarters()[:, :, 0])).colour is ColourModel.GREY
    assert probe_all(jpeg2000(np.dstack((quarters(), quarters()[:, :, 0])))).has_alpha
    assert probe_all(jpeg2000(quarters().astype(np.uint16) * 257)).bits_per_sample == 16


def test_boxes_of_colour() -> None:
    assert probe_all(with_header_boxes(box(b"colr", b"\1\0\0" + struct.pack(">I", 18)))).colour is ColourModel.RGB
    wide = with_header_boxes(box(b"colr", b"\2\0\0" + display_p3()))
    assert probe_all(wide).foreign_profile
    assert jpeg2000_profile(wide) == display_p3()
    assert jpeg2000_profile(STREAM) is None
    assert jpeg2000_profile(JP2[:60]) is None
    with pytest.raises(UnsupportedFormat, match="colour space"):
        probe_all(with_header_boxes(box(b"colr", b"\1\0\0" + struct.pack(">I", 14))))


def test_a_palette_and_named_channels() -> None:
    palette = box(b"pclr", struct.pack(">HB", 1, 3) + bytes((7, 7, 7, 1, 2, 3)))
    assert not probe_all(with_header_boxes(palette)).has_alpha
    opacity = box(b"cdef", struct.pack(">H", 1) + struct.pack(">HHH", 2, 1, 0))
    assert probe_all(with_header_boxes(opacity)).has_alpha


def siz(**fields: int) -> bytes:
    """A code stream's header with some fields changed, by their offset from SOC and width."""
    data = bytearray(STREAM)
    places = {"right": (8, ">I"), "left": (16, ">I"), "tile": (24, ">I"), "components": (40, ">H"), "depth": (42, "B")}
    places |= {"across": (43, "B")}
    for name, value in fields.items():
        struct.pack_into(places[name][1], data, places[name][0], value)
    return bytes(data)


@pytest.mark.parametrize("fields", [{"right": 0}, {"left": 64}, {"tile": 0}])
def test_headers_without_sense_are_undecodable(fields: dict[str, int]) -> None:
    with pytest.raises(Undecodable):
        probe_all(siz(**fields))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"components": 5}, "four components"),
        ({"depth": 0x87}, "unsigned"),
        ({"depth": 23}, "16 bits"),
        ({"across": 2}, "different sizes"),
        ({"right": 1_000_000, "tile": 1}, "tiles"),
    ],
)
def test_what_is_not_decoded_is_named(fields: dict[str, int], words: str) -> None:
    with pytest.raises(UnsupportedFormat, match=words):
        probe_all(siz(**fields))


def test_a_cut_file_is_incomplete_and_without_its_header_undecodable() -> None:
    assert not probe_all(JP2[:-20]).complete
    assert probe_all(JP2 + box(b"xml ", b"<a/>")).complete
    for cut in (JP2[:40], STREAM[:30]):
        with pytest.raises(Undecodable):
            probe_all(cut)


@given(st.integers(0, 170), st.binary(min_size=1, max_size=12), st.booleans())
def test_damage_is_refused_in_documented_words(at: int, junk: bytes, bare: bool) -> None:
    file = STREAM if bare else JP2
    try:
        found = probe_all(file[:at] + junk + file[at + len(junk) :])
    except (Undecodable, UnsupportedFormat):
        return
    assert found.raster.pixels > 0
