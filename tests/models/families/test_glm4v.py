from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.glm4v import GLM4V
from gateway.types import Size
from tests.models.families.promises import (
    CAPS,
    MORE,
    SIZES,
    TOKEN_CAPS,
    is_left_alone,
    is_refused,
    keeps_its_word,
    pays_no_more_for_less,
    plan,
)

CHECKPOINT = shipped_catalog().find("zai-org/GLM-4.1V-9B-Thinking").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT, CHECKPOINT.with_(max_pixels=200_704), CHECKPOINT.with_(max_pixels=18_816)])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 9, 0),
        (Size(224, 224), 64, 0),
        (Size(448, 448), 256, 0),
        (Size(1280, 720), 1_196, 0),
        (Size(1170, 2532), 3_780, 0),
        (Size(3840, 2160), 6_032, 0),
        (Size(3024, 4032), 6_030, 0),
        (Size(3000, 100), 428, 0),
        (Size(10, 2000), 200, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = GLM4V.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 2)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assume(not is_refused(size, checkpoint))
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)
    is_left_alone(size, checkpoint, pixels, tokens)


def test_a_still_image_is_budgeted_as_two_frames() -> None:
    """size.longest_edge 401,408 halves what its name says: 1280x720 is 252 tokens under it, not 512."""
    assert GLM4V.image_tokens(Size(1280, 720), CHECKPOINT.with_(max_pixels=401_408 // 2)).tokens == 252


def test_small_sides_are_scaled_up_before_the_aspect_is_checked() -> None:
    assert GLM4V.engine_size(Size(200, 1), CHECKPOINT) == Size(5600, 28)
    assert plan(Size(200, 1), CHECKPOINT).size == Size(200, 1)
    for size in (Size(201, 1), Size(2001, 10), Size(28, 5601)):
        with pytest.raises(AspectRatioExceeded):
            GLM4V.image_tokens(size, CHECKPOINT)


def test_a_policy_shrinks_even_a_strip_that_was_scaled_up() -> None:
    target = plan(Size(10, 2000), CHECKPOINT, None, 100)
    assert (target.size, target.tokens.tokens, target.reached) == (Size(28, 2800), 100, True)
