from __future__ import annotations

import numpy as np

from gateway.media.codecs.decoders.inks import inks_to_rgb


def test_each_colour_is_what_its_ink_and_black_let_through() -> None:
    inks = np.array([[[0, 0, 0, 0], [255, 0, 0, 0], [0, 0, 0, 255], [0, 128, 0, 128]]], np.uint8)
    assert inks_to_rgb(inks).tolist() == [[[255, 255, 255], [0, 255, 255], [0, 0, 0], [127, 63, 127]]]


def test_large_pictures_go_band_by_band() -> None:
    inks = np.random.default_rng(2).integers(0, 255, (600, 5, 4), np.uint8)
    assert (inks_to_rgb(inks)[599] == inks_to_rgb(inks[599:])[0]).all()
