from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.lfm2_vl import LFM2_VL
from gateway.models.family import TargetReason
from gateway.types import Size
from tests.models.families.promises import (
    CAPS,
    MORE,
    SIZES,
    TOKEN_CAPS,
    is_refused,
    keeps_its_word,
    pays_no_more_for_less,
    plan,
)

CHECKPOINT = shipped_catalog().find("LiquidAI/LFM2-VL-1.6B").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 64, 2),
        (Size(224, 224), 64, 2),
        (Size(448, 448), 196, 2),
        (Size(1280, 720), 764, 5),
        (Size(1170, 2532), 2_278, 11),
        (Size(3840, 2160), 2_300, 11),
        (Size(3024, 4032), 1_770, 9),
        (Size(3000, 100), 174, 2),
        (Size(10, 2000), 114, 2),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = LFM2_VL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 0)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assume(not is_refused(size, checkpoint))
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


def test_large_is_measured_after_rounding() -> None:
    assert LFM2_VL.cut(Size(1024, 512), CHECKPOINT).columns == 1
    assert LFM2_VL.cut(Size(1041, 512), CHECKPOINT).columns == 2


def test_tiles_and_the_overview_have_a_mark_each() -> None:
    price = LFM2_VL.image_tokens(Size(1280, 720), CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.vit_patches) == (2 * 256 + 252, 5, 3056)


def test_a_square_gets_nine_tiles_only_where_it_has_half_their_pixels() -> None:
    assert LFM2_VL.image_tokens(Size(1086, 1086), CHECKPOINT).tokens == 4 * 256 + 256
    assert LFM2_VL.image_tokens(Size(1087, 1087), CHECKPOINT).tokens == 9 * 256 + 256
    fewer = plan(Size(1500, 1500), CHECKPOINT, None, 2000)
    assert (fewer.size, fewer.tokens.tokens, fewer.reason) == (Size(1024, 1024), 1280, TargetReason.POLICY_CAP)


def test_a_strip_whose_overview_would_not_stack_is_refused() -> None:
    assert LFM2_VL.image_tokens(Size(10_000, 32), CHECKPOINT).tokens == 282
    with pytest.raises(AspectRatioExceeded):
        LFM2_VL.image_tokens(Size(100_000, 32), CHECKPOINT)


def test_nor_would_small_images_of_more_patches_than_a_tile_among_others() -> None:
    strip = Size(10_000, 32)
    assert [price.tokens for price in LFM2_VL.request_tokens([strip, strip], CHECKPOINT)] == [282, 282]
    with pytest.raises(AspectRatioExceeded):
        LFM2_VL.request_tokens([strip, Size(100, 100)], CHECKPOINT)


def test_a_small_image_is_the_largest_grid_within_the_cap() -> None:
    target = plan(Size(3000, 2000), CHECKPOINT, None, 100)
    assert (target.size, target.tokens.tokens) == (Size(384, 256), 96)
    floor = plan(Size(3000, 2000), CHECKPOINT, None, 50)
    assert (floor.reached, floor.tokens.tokens) == (False, 70)
