from __future__ import annotations

import struct

import imagecodecs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.codecs.probe.icc import is_foreign
from tests.media.codecs.samples import D65, P3, adobe_rgb, display_p3, srgb

SRGB_PRIMARIES = (0.64, 0.33, 1.0, 0.30, 0.60, 1.0, 0.15, 0.06, 1.0)


def rgb(primaries: tuple[float, ...], gamma: float) -> bytes:
    return bytes(imagecodecs.cms_profile("rgb", whitepoint=D65, primaries=primaries, gamma=gamma))


def grey(gamma: float) -> bytes:
    return bytes(imagecodecs.cms_profile("gray", whitepoint=D65, gamma=gamma))


def test_srgb_is_no_foreign_profile() -> None:
    assert not is_foreign(srgb())
    assert not is_foreign(rgb(SRGB_PRIMARIES, 2.2))
    assert not is_foreign(grey(2.2))


def test_other_primaries_or_tones_are() -> None:
    assert is_foreign(display_p3())
    assert is_foreign(adobe_rgb())
    assert is_foreign(rgb(P3, 1.8))
    assert is_foreign(rgb(SRGB_PRIMARIES, 1.0))
    assert is_foreign(grey(1.8))


def test_other_kinds_of_colour_are() -> None:
    assert is_foreign(srgb().replace(b"RGB ", b"CMYK", 1))
    assert is_foreign(srgb().replace(b"rXYZ", b"A2B0", 1))


def test_no_profile_and_broken_ones_mean_nothing() -> None:
    assert not is_foreign(None)
    assert not is_foreign(b"")
    assert not is_foreign(bytes(400))
    assert not is_foreign(srgb()[:200])


def with_curve(curve: bytes) -> bytes:
    """sRGB whose red tone curve is another one, put at the end."""
    profile = srgb() + curve
    at = profile.index(b"rTRC")
    return profile[: at + 4] + struct.pack(">II", len(srgb()), len(curve)) + profile[at + 12 :]


def fixed(value: float) -> int:
    return round(value * 65_536)


@pytest.mark.parametrize(
    ("curve", "foreign"),
    [
        (b"curv" + bytes(8), True),
        (b"curv" + struct.pack(">4xIH", 1, round(2.2 * 256)), False),
        (b"curv" + struct.pack(">4xI3H", 3, 0, round(0.214 * 65_535), 65_535), False),
        (b"para" + struct.pack(">4xHxxi", 0, fixed(2.2)), False),
        (b"para" + struct.pack(">4xHxx3i", 1, fixed(1.0), fixed(1.0), 0), True),
        (b"para" + struct.pack(">4xHxx4i", 2, fixed(1.0), fixed(-2.0), 0, fixed(0.214)), False),
        (b"para" + struct.pack(">4xHxx5i", 3, fixed(2.4), fixed(1 / 1.055), fixed(0.055 / 1.055), 0, 0), False),
        (b"para" + struct.pack(">4xHxx7i", 4, fixed(2.4), 0, 0, fixed(1.0), fixed(0.9), 0, 0), True),
        (b"para" + struct.pack(">4xHxxi", 9, 0), False),
        (b"none" + bytes(8), False),
    ],
)
def test_kinds_of_tone_curves(curve: bytes, foreign: bool) -> None:
    assert is_foreign(with_curve(curve)) is foreign


@given(st.integers(0, 587), st.binary(min_size=1, max_size=40))
def test_damage_never_raises(at: int, junk: bytes) -> None:
    profile = srgb()
    assert is_foreign(profile[:at] + junk + profile[at + len(junk) :]) in (True, False)
