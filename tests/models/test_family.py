from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import FAMILIES, family_of
from gateway.models.family import Family, Target, TargetReason
from gateway.types import ImageTokens, Size

UNKNOWN = shipped_catalog().find("nobody/knows-this").checkpoint


class TileFamily:
    """A family of another kind than those built in: fixed tiles, a thumbnail, and a price that other images change."""

    name = "tiles"
    knob = "max_dynamic_patch"

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:
        return self.request_tokens([size], checkpoint)[0]

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        tiles = 5 if len(sizes) <= 2 else 1
        return tuple(ImageTokens(256 * tiles, 2, 0, (1, 32, 32 * tiles), 256 * tiles, 1024 * tiles) for _ in sizes)

    def tokens_among(self, size: Size, image_count: int, checkpoint: Checkpoint) -> int | None:
        return 256 * (5 if image_count <= 2 else 1)

    def engine_size(self, size: Size, checkpoint: Checkpoint) -> Size:
        return Size(896, 896)

    def normalised(self, size: Size, checkpoint: Checkpoint) -> Size:
        return size

    def plan(self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None, cap_tokens: int | None) -> Target:
        price = self.image_tokens(size, checkpoint)
        reached = cap_tokens is None or price.tokens <= cap_tokens
        return Target(size, price, reached, TargetReason.CONFORMING if reached else TargetReason.CAP_UNREACHABLE)


def test_the_contract_fits_tile_families_whose_price_depends_on_the_other_images() -> None:
    family: Family = TileFamily()
    checkpoint = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
    one = family.plan(Size(300, 300), checkpoint, cap_pixels=None, cap_tokens=64)
    assert (one.reached, one.tokens.prompt_tokens) == (False, 1282)
    assert [price.tokens for price in family.request_tokens([Size(9, 9)] * 3, checkpoint)] == [256, 256, 256]


def test_every_family_is_found_by_its_own_name() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert family_of(family.name) is family


def test_the_reasons_are_words_for_labels_and_logs() -> None:
    assert {reason.value for reason in TargetReason} == {
        "conforming", "too_small", "engine_cap", "policy_cap", "engine_resizes", "cap_unreachable"
    }  # fmt: skip


# Sides that a header may claim with few pixels behind them; one-cell, one-tile and thinner strips of any length.
STRIPS = [
    Size(long, short) for short in (1, 14, 28, 31, 32, 33, 48, 112, 336, 448) for long in (3024, 65_535, 2**31 - 1)
]


@pytest.mark.parametrize("family", [family for family in FAMILIES if family.name != "text_only"], ids=lambda f: f.name)
def test_any_strip_has_a_price_or_the_one_refusal(family: Family) -> None:
    checkpoint = next(c for c in (*shipped_catalog().checkpoints, UNKNOWN) if c.family == family.name)
    for strip in (*STRIPS, *(Size(size.height, size.width) for size in STRIPS)):
        with suppress(AspectRatioExceeded):
            assert family.image_tokens(strip, checkpoint).tokens > 0
            assert family.engine_size(strip, checkpoint).pixels > 0
