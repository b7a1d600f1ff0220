from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.ernie4_5_vl import ERNIE4_5_VL
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

CHECKPOINT = shipped_catalog().find("baidu/ERNIE-4.5-VL-28B-A3B-PT").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT, CHECKPOINT.with_(max_pixels=1_003_520)])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 4, 0),
        (Size(224, 224), 64, 0),
        (Size(448, 448), 256, 0),
        (Size(1280, 720), 1_196, 0),
        (Size(1170, 2532), 3_780, 0),
        (Size(3840, 2160), 6_032, 0),
        (Size(3024, 4032), 6_120, 0),
        (Size(3000, 100), 428, 0),
        (Size(10, 2000), 29, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = ERNIE4_5_VL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 2)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assume(not is_refused(size, checkpoint))
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)
    is_left_alone(size, checkpoint, pixels, tokens)


def test_a_large_photograph_becomes_what_the_processor_makes_of_it() -> None:
    target = plan(Size(3024, 4032), CHECKPOINT)
    assert (target.size, target.reason) == (Size(1904, 2520), TargetReason.ENGINE_CAP)
    assert target.tokens == ERNIE4_5_VL.image_tokens(Size(3024, 4032), CHECKPOINT)


def test_exactly_200_to_1_still_passes() -> None:
    assert ERNIE4_5_VL.image_tokens(Size(200, 1), CHECKPOINT).tokens > 0
    with pytest.raises(AspectRatioExceeded):
        ERNIE4_5_VL.image_tokens(Size(201, 1), CHECKPOINT)
