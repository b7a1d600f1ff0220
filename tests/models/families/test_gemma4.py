from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.gemma4 import GEMMA4
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

CHECKPOINT = shipped_catalog().find("google/gemma-4-E4B-it").checkpoint
CHECKPOINTS = st.sampled_from([*(CHECKPOINT.with_(max_pixels=budget * 2304) for budget in (70, 140, 280, 560, 1120))])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 2),
        (Size(224, 224), 256, 2),
        (Size(448, 448), 256, 2),
        (Size(1280, 720), 264, 2),
        (Size(1170, 2532), 264, 2),
        (Size(3840, 2160), 264, 2),
        (Size(3024, 4032), 266, 2),
        (Size(3000, 100), 273, 2),
        (Size(10, 2000), 236, 2),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = GEMMA4.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 0)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assert not is_refused(size, checkpoint)
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


def test_an_image_fills_its_budget_whatever_its_size() -> None:
    for scale in (1, 10, 100):
        assert GEMMA4.image_tokens(Size(16 * scale, 9 * scale), CHECKPOINT).tokens == 264


@pytest.mark.parametrize(("budget", "tokens"), [(70, 66), (140, 120), (280, 264), (560, 527), (1120, 1100)])
def test_the_budget_is_the_only_knob(budget: int, tokens: int) -> None:
    capped = CHECKPOINT.with_(max_pixels=budget * 2304)
    assert GEMMA4.image_tokens(Size(1280, 720), capped).tokens == tokens
    target = plan(Size(1280, 720), capped, None, tokens - 1)
    assert (target.reached, target.tokens.tokens) == (False, tokens)
    assert GEMMA4.knob == "mm_processor_kwargs.max_soft_tokens"


def test_a_side_of_which_nothing_is_left_becomes_one_cell() -> None:
    assert GEMMA4.engine_size(Size(200, 1), CHECKPOINT) == Size(11_328, 48)
    assert GEMMA4.engine_size(Size(1, 2000), CHECKPOINT) == Size(48, 13_440)
    assert GEMMA4.engine_size(Size(1, 290), CHECKPOINT) == Size(48, 13_440)


def test_a_large_image_is_delivered_as_large_as_the_budget() -> None:
    settled = plan(Size(3840, 2160), CHECKPOINT)
    assert (settled.size, settled.reason) == (Size(1056, 576), TargetReason.ENGINE_CAP)
    unrounded = plan(Size(2531, 1170), CHECKPOINT)
    assert unrounded.size.pixels <= CHECKPOINT.max_pixels
    assert unrounded.tokens == GEMMA4.image_tokens(Size(2531, 1170), CHECKPOINT)
    assert plan(Size(800, 700), CHECKPOINT).size == Size(800, 700)


def test_a_budget_below_one_cell_is_one_cell() -> None:
    for size in (Size(500, 400), Size(400, 500)):
        assert GEMMA4.image_tokens(size, CHECKPOINT.with_(max_pixels=1)).tokens == 1
