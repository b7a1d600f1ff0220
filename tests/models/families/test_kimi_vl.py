from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.kimi_vl import KIMI_VL
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

CHECKPOINT = shipped_catalog().find("moonshotai/Kimi-VL-A3B-Instruct").checkpoint
CHECKPOINTS = st.sampled_from(
    [CHECKPOINT, CHECKPOINT.with_(max_pixels=16_384 * 196), CHECKPOINT.with_(max_pixels=160 * 196)]
)


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 1, 0),
        (Size(224, 224), 64, 0),
        (Size(448, 448), 256, 0),
        (Size(1280, 720), 1_075, 0),
        (Size(1170, 2532), 1_056, 0),
        (Size(3840, 2160), 1_032, 0),
        (Size(3024, 4032), 1_036, 0),
        (Size(3000, 100), 432, 0),
        (Size(10, 2000), 72, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = KIMI_VL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 4)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assume(not is_refused(size, checkpoint))
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


def test_padding_comes_after_the_limit() -> None:
    """4,096 patches are 1,024 tokens, but what is padded counts on top."""
    assert KIMI_VL.image_tokens(Size(1280, 720), CHECKPOINT).tokens == 1075
    assert KIMI_VL.engine_size(Size(1280, 720), CHECKPOINT) == Size(1204, 700)


def test_what_the_engine_would_scale_is_delivered_scaled_and_not_padded() -> None:
    target = plan(Size(1280, 720), CHECKPOINT)
    assert (target.size, target.reason) == (Size(1202, 676), TargetReason.ENGINE_CAP)
    assert target.tokens.tokens == 1075
    assert KIMI_VL.rule.content(target.size, CHECKPOINT) == target.size


def test_a_side_of_512_patches_is_refused() -> None:
    assert KIMI_VL.image_tokens(Size(7140, 14), CHECKPOINT).tokens == 255
    for size in (Size(7141, 14), Size(100_000, 100)):
        with pytest.raises(AspectRatioExceeded):
            KIMI_VL.image_tokens(size, CHECKPOINT)


def test_one_cell_is_always_within_a_token_cap() -> None:
    target = plan(Size(1000, 700), CHECKPOINT, None, 1)
    assert (target.size, target.tokens.tokens, target.reached) == (Size(28, 19), 1, True)
    assert plan(Size(1000, 700), CHECKPOINT, 783).reason is TargetReason.CAP_UNREACHABLE


def test_a_limit_below_one_patch_is_one_patch() -> None:
    assert KIMI_VL.image_tokens(Size(500, 400), CHECKPOINT.with_(max_pixels=1)).tokens == 1
