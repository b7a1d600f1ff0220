from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.ovis2_5 import OVIS2_5
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

CHECKPOINT = shipped_catalog().find("AIDC-AI/Ovis2.5-9B").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT, CHECKPOINT.with_(max_pixels=500_000), CHECKPOINT.with_(max_pixels=210_000)])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 198, 0),
        (Size(224, 224), 198, 0),
        (Size(448, 448), 198, 0),
        (Size(1280, 720), 882, 0),
        (Size(1170, 2532), 2_925, 0),
        (Size(3840, 2160), 3_110, 0),
        (Size(3024, 4032), 3_074, 0),
        (Size(3000, 100), 284, 0),
        (Size(10, 2000), 202, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = OVIS2_5.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 0)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assume(not is_refused(size, checkpoint))
    keeps_its_word(size, checkpoint, pixels, tokens, OVIS2_5.rule.seen(size, checkpoint))
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


def test_the_marks_are_image_positions() -> None:
    price = OVIS2_5.image_tokens(Size(448, 448), CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.vit_patches, price.position_advance) == (198, 0, 784, 198)
    assert plan(Size(2000, 2000), CHECKPOINT, None, 402).tokens.tokens == 402
    assert plan(Size(2000, 2000), CHECKPOINT, None, 401).tokens.tokens < 401


def test_longer_shapes_than_200_to_1_are_cut_but_not_small_ones() -> None:
    assert OVIS2_5.engine_size(Size(20_000, 40), CHECKPOINT) == Size(8000, 32)
    assert OVIS2_5.engine_size(Size(20_000, 20), CHECKPOINT) == Size(32_000, 32)


def test_what_would_leave_no_row_of_cells_is_refused() -> None:
    assert OVIS2_5.image_tokens(Size(3136, 1), CHECKPOINT).tokens == 3138
    with pytest.raises(AspectRatioExceeded):
        OVIS2_5.image_tokens(Size(3138, 1), CHECKPOINT)


def test_no_grid_is_below_the_floor() -> None:
    target = plan(Size(2000, 2000), CHECKPOINT, None, 100)
    assert (target.size, target.tokens.tokens, target.reason) == (Size(448, 448), 198, TargetReason.CAP_UNREACHABLE)


def test_a_cap_below_the_floor_is_the_floor() -> None:
    assert OVIS2_5.image_tokens(Size(10, 10), CHECKPOINT.with_(max_pixels=102_400)).tokens == 102
