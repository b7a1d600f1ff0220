from __future__ import annotations

import imagecodecs
import numpy as np

from gateway.media.codecs.decoders.profile import inks_to_srgb, to_srgb
from gateway.media.codecs.decoders.raster import Raster
from tests.media.codecs.samples import D65, Pixels, adobe_rgb, display_p3, near, quarters, srgb

# sRGB's red, green and blue as Display P3 (gamma 2.2) has them; from the primaries' matrices.
P3_OF_SRGB_RED = (234, 51, 36)


def flat(colour: tuple[int, ...], alpha: int | None = None) -> Pixels:
    bands = colour if alpha is None else (*colour, alpha)
    return np.full((300, 4, len(bands)), bands, np.uint8)


def first(raster: Raster) -> tuple[int, ...]:
    return tuple(int(value) for value in raster.samples[0, 0])


def test_display_p3_becomes_srgb() -> None:
    shown = to_srgb(Raster(flat(P3_OF_SRGB_RED)), display_p3())
    assert near([first(shown)], [(255, 0, 0)], 6)
    assert (shown.samples == shown.samples[0, 0]).all()
    assert (
        first(to_srgb(Raster(flat((128, 128, 128))), display_p3()))[0]
        == first(to_srgb(Raster(flat((128, 128, 128))), display_p3()))[2]
    )


def test_adobe_rgb_becomes_srgb() -> None:
    # Adobe RGB's pure green lies outside sRGB: clipped, with no red or blue left.
    red, green, blue = first(to_srgb(Raster(flat((0, 255, 0))), adobe_rgb()))
    assert (red, green) == (0, 255)
    assert blue < 60
    assert near([first(to_srgb(Raster(flat((219, 0, 0))), adobe_rgb()))], [(255, 0, 0)], 4)


def test_transparency_and_padding_are_left_alone() -> None:
    clear = to_srgb(Raster(flat(P3_OF_SRGB_RED, alpha=80), alpha=True), display_p3())
    assert clear.alpha
    assert first(clear)[3] == 80
    assert not to_srgb(Raster(flat(P3_OF_SRGB_RED, alpha=255)), display_p3()).alpha


def test_grey_profiles_and_grey_pictures() -> None:
    grey = bytes(imagecodecs.cms_profile("gray", whitepoint=D65, gamma=1.8))
    single = Raster(np.full((4, 4, 1), 100, np.uint8), grey=True)
    assert first(to_srgb(single, grey)) == (119, 119, 119)
    assert first(to_srgb(Raster(flat((100, 100, 100)), grey=True), grey)) == (119, 119, 119)
    assert to_srgb(Raster(quarters()), grey).samples is not None
    assert first(to_srgb(single, srgb())) == (100, 100, 100)


def test_a_profile_that_does_not_fit_or_is_broken_changes_nothing() -> None:
    raster = Raster(quarters())
    assert to_srgb(raster, None) is raster
    assert to_srgb(raster, srgb().replace(b"RGB ", b"CMYK", 1)) is raster
    broken = display_p3()[:140] + bytes(300)
    assert (to_srgb(raster, broken).samples == quarters()).all()


def test_read_only_samples_are_not_written() -> None:
    samples = quarters()
    samples.flags.writeable = False
    assert (to_srgb(Raster(samples), display_p3()).samples != samples).any()
    assert (samples == quarters()).all()


def test_inks_need_a_profile_of_inks() -> None:
    inks = np.zeros((4, 4, 4), np.uint8)
    assert inks_to_srgb(inks, None) is None
    assert inks_to_srgb(inks, display_p3()) is None
    assert inks_to_srgb(inks, bytes(16) + b"CMYK" + bytes(200)) is None
