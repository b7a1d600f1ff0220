from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.gemma3 import GEMMA3
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

CHECKPOINT = shipped_catalog().find("google/gemma-3-4b-it").checkpoint
assert CHECKPOINT.tiles is not None
PAN_AND_SCAN = replace(CHECKPOINT, tiles=replace(CHECKPOINT.tiles, most=4))
CHECKPOINTS = st.sampled_from([CHECKPOINT, PAN_AND_SCAN])


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 4),
        (Size(224, 224), 256, 4),
        (Size(448, 448), 256, 4),
        (Size(1280, 720), 256, 4),
        (Size(1170, 2532), 256, 4),
        (Size(3840, 2160), 256, 4),
        (Size(3024, 4032), 256, 4),
        (Size(3000, 100), 256, 4),
        (Size(10, 2000), 256, 4),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = GEMMA3.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens, price.wrapper_tokens) == (tokens, struct_tokens, 0)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS, MORE)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None, more: int
) -> None:
    assert not is_refused(size, checkpoint)
    keeps_its_word(size, checkpoint, pixels, tokens)
    pays_no_more_for_less(size, checkpoint, pixels, tokens, more)


@pytest.mark.parametrize(
    ("size", "crops"),
    [
        (Size(1000, 840), 0),  # below 1.2:1
        (Size(600, 512), 0),  # above, but crops of 300 x 512 are two and the aspect is below
        (Size(1280, 720), 2),
        (Size(2560, 1024), 3),  # 2.5:1 rounds up
        (Size(2559, 1024), 2),
        (Size(9000, 1000), 4),
        (Size(3000, 100), 0),  # too narrow
        (Size(510, 400), 0),  # too short for two
        (Size(1023, 256), 3),  # too short for four
    ],
)
def test_pan_and_scan_adds_a_view_per_crop(size: Size, crops: int) -> None:
    for turned in (size, Size(size.height, size.width)):
        price = GEMMA3.image_tokens(turned, PAN_AND_SCAN)
        views = crops + 1
        assert (price.tokens, price.struct_tokens, price.vit_patches) == (256 * views, 4 * views, 4096 * views)


def test_a_large_image_is_delivered_as_the_square_that_the_processor_makes() -> None:
    target = plan(Size(3024, 4032), CHECKPOINT)
    assert (target.size, target.reason) == (Size(896, 896), TargetReason.ENGINE_CAP)
    assert plan(Size(900, 600), CHECKPOINT).size == Size(900, 600)


def test_with_pan_and_scan_the_aspect_stays_and_each_crop_is_as_large_as_a_view() -> None:
    target = plan(Size(4000, 2000), PAN_AND_SCAN)
    assert (target.size, target.reason) == (Size(1792, 896), TargetReason.ENGINE_CAP)
    assert target.tokens.tokens == 768


def test_nothing_costs_less_than_one_view() -> None:
    target = plan(Size(4000, 3000), CHECKPOINT, None, 255)
    assert (target.reached, target.tokens.tokens) == (False, 256)
    assert GEMMA3.knob == "mm_processor_kwargs.do_pan_and_scan"
    assert plan(Size(4000, 2000), PAN_AND_SCAN, None, 512).tokens.tokens == 256
    assert plan(Size(9000, 2500), PAN_AND_SCAN, None, 1100).tokens.tokens == 1024
