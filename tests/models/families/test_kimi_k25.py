from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.kimi_k25 import KIMI_K25
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

CHECKPOINT = shipped_catalog().find("moonshotai/Kimi-K2.5").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT, CHECKPOINT.with_(max_pixels=164 * 196)])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 1, 0),
        (Size(224, 224), 64, 0),
        (Size(448, 448), 256, 0),
        (Size(1280, 720), 1_196, 0),
        (Size(1170, 2532), 3_822, 0),
        (Size(3840, 2160), 4_214, 0),
        (Size(3024, 4032), 4_144, 0),
        (Size(3000, 100), 432, 0),
        (Size(10, 2000), 72, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = KIMI_K25.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 4)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assert not is_refused(size, checkpoint)
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


def test_nothing_is_refused_and_both_limits_hold() -> None:
    assert KIMI_K25.engine_size(Size(100_000, 1), CHECKPOINT) == Size(7168, 28)
    assert KIMI_K25.engine_size(Size(100_000, 100_000), CHECKPOINT) == Size(1792, 1792)


@given(SIZES, CAPS, TOKEN_CAPS)
def test_what_a_plan_shrinks_is_padded_at_most(size: Size, pixels: int | None, tokens: int | None) -> None:
    for target in (plan(size, CHECKPOINT), plan(size, CHECKPOINT, pixels, tokens)):
        if target.size != size:
            assert KIMI_K25.rule.content(target.size, CHECKPOINT) == target.size


def test_the_largest_grid_within_a_cap_is_taken() -> None:
    target = plan(Size(1280, 720), CHECKPOINT, None, 1000)
    assert (target.tokens.tokens, target.reason) == (984, TargetReason.POLICY_CAP)
    assert target.size == Size(1148, 645)
