from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe import NeedMore, probe, probe_all
from gateway.media.codecs.probe.heif import has_track, heif_profile
from gateway.types import ColourModel, ImageFormat, Size
from tests.media.codecs.samples import avif, box, deep_quarters, display_p3, heic, quarters, srgb, with_property

AVIF, HEIC = avif(), heic()
# Its encoder codes 64 rows and shows 32.
CROP = struct.pack(">4I", 64, 1, 32, 1)
RGBA = np.dstack((quarters(), np.full((32, 64), 128, np.uint8)))


@pytest.mark.parametrize(("file", "kind"), [(AVIF, ImageFormat.AVIF), (HEIC, ImageFormat.HEIC)])
def test_size_and_kind(file: bytes, kind: ImageFormat) -> None:
    found = probe_all(file)
    assert (found.format, found.raster, found.orientation, found.frames) == (kind, Size(64, 32), 1, 1)
    assert (found.bits_per_sample, found.has_alpha, found.complete) == (8, False, True)


def test_transparency_grey_and_depth_are_read() -> None:
    assert probe_all(avif(RGBA)).has_alpha
    assert probe_all(heic(RGBA)).has_alpha
    assert probe_all(avif(quarters()[:, :, 0])).colour is ColourModel.GREY
    assert probe_all(avif(deep_quarters(10), bits=10)).bits_per_sample == 10
    assert probe_all(avif(deep_quarters(12), bits=12)).bits_per_sample == 12


@pytest.mark.parametrize(
    ("angle", "axis", "orientation"),
    [(0, 0, 4), (0, 1, 2), (1, None, 8), (1, 0, 5), (1, 1, 7), (2, None, 3), (2, 0, 2), (3, None, 6), (3, 0, 7)],
)
def test_turns_and_mirrors_are_an_orientation(angle: int, axis: int | None, orientation: int) -> None:
    file = with_property(AVIF, b"irot", bytes((angle,)))
    if axis is not None:
        file = with_property(file, b"imir", bytes((axis,)))
    found = probe_all(file)
    assert (found.raster, found.orientation) == (Size(64, 32), orientation)


def test_a_heic_is_told_upright_because_its_decoder_turns_it() -> None:
    found = probe_all(with_property(HEIC, b"irot", b"\1"))
    assert (found.raster, found.orientation) == (Size(32, 64), 1)
    assert CROP in HEIC
    assert probe_all(HEIC.replace(CROP, struct.pack(">4I", 40, 1, 20, 1))).raster == Size(40, 20)


def test_a_broken_crop_is_none() -> None:
    assert probe_all(HEIC.replace(CROP, bytes(16))).raster == Size(64, 64)


def test_profiles() -> None:
    assert not probe_all(AVIF).foreign_profile
    wide = with_property(AVIF, b"colr", b"prof" + display_p3())
    assert probe_all(wide).foreign_profile
    assert heif_profile(wide) == display_p3()
    assert not probe_all(with_property(AVIF, b"colr", b"prof" + srgb())).foreign_profile
    assert heif_profile(AVIF) is None


def test_frames_of_a_track_are_counted() -> None:
    table = box(b"stsz", struct.pack(">III", 0, 0, 7))
    track = box(b"moov", box(b"trak", box(b"mdia", box(b"minf", box(b"stbl", table)))))
    assert probe_all(AVIF + track).frames == 7
    assert has_track(AVIF + track)
    assert not has_track(AVIF)


def test_a_cut_file_is_incomplete_and_without_its_description_undecodable() -> None:
    assert not probe_all(AVIF[:-5]).complete
    with pytest.raises(Undecodable):
        probe_all(AVIF[:100])
    with pytest.raises(Undecodable, match="no picture"):
        probe_all(AVIF[:32])


def test_other_codings_are_named() -> None:
    with pytest.raises(UnsupportedFormat, match="HEVC or AV1"):
        probe_all(AVIF.replace(b"av01", b"jpeg"))
    with pytest.raises(Undecodable, match="no valid size"):
        probe_all(AVIF.replace(struct.pack(">II", 64, 32), bytes(8)))


def test_more_is_wanted_where_the_description_lies_between() -> None:
    file = box(b"ftyp", b"avifmif1") + box(b"free", bytes(4_000)) + AVIF[AVIF.index(b"meta") - 4 :]
    with pytest.raises(NeedMore):
        probe(file[:100], file[-10:], len(file))


@given(st.integers(0, len(AVIF) - 1), st.binary(min_size=1, max_size=12), st.booleans())
def test_damage_is_refused_in_documented_words(at: int, junk: bytes, other: bool) -> None:
    file = HEIC if other else AVIF
    damaged = file[:at] + junk + file[at + len(junk) :]
    try:
        found = probe_all(damaged)
    except (Undecodable, UnsupportedFormat):
        return
    assert found.raster.pixels > 0
