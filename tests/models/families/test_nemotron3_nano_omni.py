from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.nemotron3_nano_omni import NEMOTRON3_NANO_OMNI
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

CHECKPOINT = shipped_catalog().find("nvidia/Nemotron-3-Nano-Omni").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT, replace(CHECKPOINT, image_budget_tokens=2000)])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 2),
        (Size(224, 224), 256, 2),
        (Size(448, 448), 256, 2),
        (Size(1280, 720), 920, 2),
        (Size(1170, 2532), 2_960, 2),
        (Size(3840, 2160), 3_311, 2),
        (Size(3024, 4032), 3_300, 2),
        (Size(3000, 100), 376, 2),
        (Size(10, 2000), 360, 2),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = NEMOTRON3_NANO_OMNI.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 0)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assert not is_refused(size, checkpoint)
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


def test_a_side_of_an_odd_number_of_patches_is_one_longer() -> None:
    assert NEMOTRON3_NANO_OMNI.engine_size(Size(1280, 720), CHECKPOINT) == Size(1280, 736)
    assert NEMOTRON3_NANO_OMNI.engine_size(Size(1264, 736), CHECKPOINT) == Size(1280, 736)


def test_images_that_are_too_many_for_the_context_shrink_each_other() -> None:
    tight = replace(CHECKPOINT, image_budget_tokens=16_384 - 64 - 4)
    alone = NEMOTRON3_NANO_OMNI.image_tokens(Size(2560, 1440), tight).tokens
    eight = NEMOTRON3_NANO_OMNI.request_tokens([Size(2560, 1440)] * 8, tight)
    assert (alone, [price.tokens for price in eight]) == (3311, [1980] * 8)
    mixed = NEMOTRON3_NANO_OMNI.request_tokens([Size(2560, 1440)] * 7 + [Size(100, 100)], tight)
    assert mixed[-1].tokens == 16  # a share of the minimum is not raised to the minimum
    assert sum(price.tokens for price in mixed) <= 16_316


def test_the_context_counts_where_nobody_said_what_the_text_leaves() -> None:
    known = replace(CHECKPOINT, context_tokens=2004)
    told = replace(CHECKPOINT, image_budget_tokens=2000)
    sizes = [Size(3000, 2000), Size(700, 900)]
    assert NEMOTRON3_NANO_OMNI.request_tokens(sizes, known) == NEMOTRON3_NANO_OMNI.request_tokens(sizes, told)


def test_a_strip_among_too_many_images_may_be_left_with_nothing() -> None:
    tight = replace(CHECKPOINT, image_budget_tokens=300)
    with pytest.raises(AspectRatioExceeded):
        NEMOTRON3_NANO_OMNI.request_tokens([Size(100_000, 1)] * 20, tight)


def test_no_grid_is_below_the_floor() -> None:
    target = plan(Size(2000, 2000), CHECKPOINT, None, 100)
    assert (target.size, target.tokens.tokens, target.reason) == (Size(512, 512), 256, TargetReason.CAP_UNREACHABLE)
