from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.paddleocr_vl import PADDLEOCR_VL
from gateway.models.family import TargetReason
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

CHECKPOINT = shipped_catalog().find("PaddlePaddle/PaddleOCR-VL").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT, CHECKPOINT.with_(max_pixels=1_003_520)])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 196, 0),
        (Size(224, 224), 196, 0),
        (Size(448, 448), 256, 0),
        (Size(1280, 720), 1_196, 0),
        (Size(1170, 2532), 3_520, 0),
        (Size(3840, 2160), 3_600, 0),
        (Size(3024, 4032), 3_519, 0),
        (Size(3000, 100), 428, 0),
        (Size(10, 2000), 200, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = PADDLEOCR_VL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 2)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assume(not is_refused(size, checkpoint))
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)
    is_left_alone(size, checkpoint, pixels, tokens)


def test_a_height_is_scaled_up_first_then_a_width() -> None:
    """2x22 becomes 3x28 and then 28x261: the processor loses the aspect, so the raster goes as it is."""
    assert PADDLEOCR_VL.engine_size(Size(2, 22), CHECKPOINT) == Size(140, 1176)
    assert plan(Size(2, 22), CHECKPOINT).size == Size(2, 22)
    with pytest.raises(AspectRatioExceeded):
        PADDLEOCR_VL.image_tokens(Size(2001, 10), CHECKPOINT)


def test_a_cap_below_the_floor_cannot_be_reached() -> None:
    target = plan(Size(1000, 1000), CHECKPOINT, None, 100)
    assert (target.reached, target.reason) == (False, TargetReason.CAP_UNREACHABLE)
    assert (target.size, target.tokens.tokens) == (Size(392, 392), 196)
    assert PADDLEOCR_VL.knob == "mm_processor_kwargs.size.shortest_edge"
