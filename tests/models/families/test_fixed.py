from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.fixed import GEMMA3N, PALIGEMMA
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

CHECKPOINT = shipped_catalog().find("google/paligemma2-3b-pt-448").checkpoint
GEMMA = shipped_catalog().find("google/gemma-3n-E4B-it").checkpoint
CHECKPOINTS = st.sampled_from([CHECKPOINT, GEMMA])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 1_024, 0),
        (Size(224, 224), 1_024, 0),
        (Size(448, 448), 1_024, 0),
        (Size(1280, 720), 1_024, 0),
        (Size(1170, 2532), 1_024, 0),
        (Size(3840, 2160), 1_024, 0),
        (Size(3024, 4032), 1_024, 0),
        (Size(3000, 100), 1_024, 0),
        (Size(10, 2000), 1_024, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = PALIGEMMA.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 0)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assert not is_refused(size, checkpoint)
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


def test_the_larger_the_square_the_more_tokens() -> None:
    for side, tokens in ((224, 256), (448, 1024), (896, 4096)):
        checkpoint = shipped_catalog().find(f"google/paligemma2-3b-pt-{side}").checkpoint
        assert PALIGEMMA.image_tokens(Size(1280, 720), checkpoint).tokens == tokens
        assert PALIGEMMA.engine_size(Size(1280, 720), checkpoint) == Size(side, side)


def test_gemma_3n_marks_its_image() -> None:
    price = GEMMA3N.image_tokens(Size(1280, 720), GEMMA)
    assert (price.tokens, price.struct_tokens, price.grid) == (256, 4, (1, 16, 16))


def test_a_cap_below_the_price_cannot_be_reached() -> None:
    target = plan(Size(100, 100), GEMMA, None, 255)
    assert (target.size, target.reason) == (Size(100, 100), TargetReason.CAP_UNREACHABLE)
    assert plan(Size(1000, 1000), GEMMA).size == Size(768, 768)
