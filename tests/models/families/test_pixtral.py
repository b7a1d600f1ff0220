from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.pixtral import PIXTRAL_HF, PIXTRAL_MISTRAL
from gateway.models.family import TargetReason
from gateway.models.tiling import TileEngine
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

CHECKPOINT = shipped_catalog().find("mistral-community/pixtral-12b").checkpoint
PIXTRAL = shipped_catalog().find("mistralai/Pixtral-12B-2409").checkpoint
MISTRAL = shipped_catalog().find("mistralai/Mistral-Small-3.2-24B-Instruct-2506").checkpoint
SMALL = replace(MISTRAL, family="pixtral_hf")
CHECKPOINTS = st.sampled_from([CHECKPOINT, MISTRAL, PIXTRAL, SMALL, SMALL.with_(max_pixels=700 * 700)])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 1, 1),
        (Size(224, 224), 196, 14),
        (Size(448, 448), 784, 28),
        (Size(1280, 720), 2_304, 36),
        (Size(1170, 2532), 1_920, 64),
        (Size(3840, 2160), 2_304, 36),
        (Size(3024, 4032), 3_072, 64),
        (Size(3000, 100), 192, 3),
        (Size(10, 2000), 64, 64),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = PIXTRAL_HF.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 0)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assume(not is_refused(size, checkpoint))
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)
    is_left_alone(size, checkpoint, pixels, tokens)


def test_the_two_readings_differ_by_a_row_or_a_column() -> None:
    """1477x578 shrinks to 400.7 rows of pixels: 400 are 25 rows of cells, 401 are 26."""
    assert PIXTRAL_HF.image_tokens(Size(1477, 578), CHECKPOINT).tokens == 1600
    assert PIXTRAL_MISTRAL.image_tokens(Size(1477, 578), PIXTRAL).tokens == 1664


def test_a_strip_of_which_nothing_is_left_is_refused_by_one_of_them() -> None:
    with pytest.raises(AspectRatioExceeded):
        PIXTRAL_HF.image_tokens(Size(100_000, 90), CHECKPOINT)
    assert PIXTRAL_MISTRAL.engine_size(Size(100_000, 1), PIXTRAL) == Size(1024, 16)


def test_each_row_of_cells_has_a_mark() -> None:
    price = PIXTRAL_MISTRAL.image_tokens(Size(1280, 720), MISTRAL)
    assert (price.tokens, price.struct_tokens, price.grid, price.vit_patches) == (1196, 26, (1, 52, 92), 4784)


def test_the_longest_edge_is_a_checkpoints_cap() -> None:
    assert PIXTRAL_HF.image_tokens(Size(1280, 720), SMALL.with_(max_pixels=700 * 700)).tokens == 375


def test_a_photograph_becomes_what_the_processor_makes_of_it() -> None:
    target = plan(Size(3024, 4032), CHECKPOINT)
    assert (target.size, target.reason) == (Size(768, 1024), TargetReason.ENGINE_CAP)
    assert plan(Size(900, 900), CHECKPOINT).size == Size(900, 900)
    capped = plan(Size(3024, 4032), CHECKPOINT, None, 1000)
    assert (capped.size, capped.tokens.tokens) == (Size(432, 576), 972)


def test_sglang_runs_the_other_reading() -> None:
    served = MISTRAL.counted_by(TileEngine.SGLANG)
    assert (MISTRAL.family, served.family) == ("pixtral_mistral", "pixtral_hf")
    assert CHECKPOINT.counted_by(TileEngine.SGLANG) is CHECKPOINT
