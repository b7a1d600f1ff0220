"""Gemini's rules: small images cost one tile, large ones by the shorter side; version 3 by level alone."""

from __future__ import annotations

from gateway.models.closed.gemini import GEMINI_2, GEMINI_3
from gateway.types import Size


def test_small_images_cost_one_tile() -> None:
    assert GEMINI_2.image_tokens(Size(384, 384)).tokens == 258
    assert GEMINI_2.image_tokens(Size(385, 384)).tokens == 258 * 4


def test_version_three_charges_by_level() -> None:
    prices = [GEMINI_3.image_tokens(Size(640, 480), level).tokens for level in ("low", "medium", "high")]
    assert prices == [280, 560, 1120]
    assert GEMINI_3.image_tokens(Size(1, 1)).tokens == 1120
