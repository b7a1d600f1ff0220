"""The grid families' promises: the engine's own count, never above a cap, and a plan that holds still."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded, Undecodable
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import family_of
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import smart_resize
from gateway.types import Size

QWEN2 = shipped_catalog().find("Qwen/Qwen2-VL-7B-Instruct").checkpoint
QWEN3 = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
SIDES = st.one_of(st.integers(1, 100_000), st.integers(1, 300), st.integers(1, 3_000))
SIZES = st.builds(Size, SIDES, SIDES)
# Shipped limits, an operator's smaller cap, a floor and a cap close to each other, and odd limits.
CHECKPOINTS = st.sampled_from(
    [
        QWEN2,
        QWEN3,
        QWEN3.with_(max_pixels=1280 * 1024),
        QWEN2.with_(min_pixels=200_704, max_pixels=1_003_520),
        QWEN3.with_(min_pixels=65_536, max_pixels=80_000),
        QWEN2.with_(min_pixels=5_000, max_pixels=77_777),
    ]
)
CAPS = st.one_of(st.none(), st.integers(1, 20_000_000), st.integers(1, 200_000))
TOKEN_CAPS = st.one_of(st.none(), st.integers(1, 17_000), st.integers(1, 300))


def plan(size: Size, checkpoint: Checkpoint, pixels: int | None = None, tokens: int | None = None) -> Target:
    return family_of(checkpoint.family).plan(size, checkpoint, cap_pixels=pixels, cap_tokens=tokens)


def within_ratio(size: Size, checkpoint: Checkpoint) -> bool:
    return max(size.width, size.height) <= checkpoint.max_ratio * min(size.width, size.height)


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS)
@example(Size(10, 2000), QWEN2, None, 15)
@example(Size(28, 5600), QWEN2, None, 100)
@example(Size(1000, 700), QWEN3, None, 64)
@example(Size(690, 15_420), QWEN2, 12_544, None)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    family = family_of(checkpoint.family)
    if not within_ratio(size, checkpoint):
        with pytest.raises(AspectRatioExceeded):
            plan(size, checkpoint, pixels, tokens)
        return
    target = plan(size, checkpoint, pixels, tokens)
    assert min(target.size.width, target.size.height) >= checkpoint.factor
    assert family.image_tokens(target.size, checkpoint) == target.tokens
    assert target.reached is (target.reason is not TargetReason.CAP_UNREACHABLE)
    if target.reached:
        assert pixels is None or target.size.pixels <= pixels
        assert pixels is None or target.tokens.tokens * checkpoint.factor**2 <= pixels
        assert tokens is None or target.tokens.tokens <= tokens


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS)
@example(Size(1000, 700), QWEN3, None, 64)
def test_what_a_plan_changes_the_engine_leaves_alone(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    assume(within_ratio(size, checkpoint))
    family = family_of(checkpoint.family)
    target = plan(size, checkpoint, pixels, tokens)
    if target.size != family.normalised(size, checkpoint):
        assert family.engine_size(target.size, checkpoint) == target.size


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS)
@example(Size(10, 2000), QWEN2, None, 15)
@example(Size(1000, 700), QWEN3, 65_536, None)
def test_planning_a_plan_changes_nothing(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    assume(within_ratio(size, checkpoint))
    once = plan(size, checkpoint, pixels, tokens)
    twice = plan(once.size, checkpoint, pixels, tokens)
    assert (twice.size, twice.tokens) == (once.size, once.tokens)


@given(SIZES, CHECKPOINTS, TOKEN_CAPS.filter(bool), st.integers(1, 5_000))
@example(Size(20, 2000), QWEN3, 64, 6)
def test_a_smaller_cap_never_costs_more(size: Size, checkpoint: Checkpoint, cap: int, more: int) -> None:
    assume(within_ratio(size, checkpoint))
    small, large = plan(size, checkpoint, None, cap), plan(size, checkpoint, None, cap + more)
    assert small.tokens.tokens <= large.tokens.tokens <= plan(size, checkpoint).tokens.tokens
    assert small.reached <= large.reached


@given(SIZES, CHECKPOINTS, st.integers(1, 20_000_000), st.integers(1, 2_000_000))
def test_a_smaller_pixel_cap_never_costs_more(size: Size, checkpoint: Checkpoint, cap: int, more: int) -> None:
    assume(within_ratio(size, checkpoint))
    small, large = plan(size, checkpoint, cap), plan(size, checkpoint, cap + more)
    assert small.tokens.tokens <= large.tokens.tokens


@given(SIZES, CHECKPOINTS, CAPS, TOKEN_CAPS)
def test_the_aspect_drifts_by_less_than_one_grid_step(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    """One scale exists at which neither side of the target is a whole grid unit off; a floor may be further off."""
    assume(within_ratio(size, checkpoint))
    target, unit = plan(size, checkpoint, pixels, tokens), checkpoint.factor
    if target.reached:
        assert (target.size.width - unit) * size.height < (target.size.height + unit) * size.width
        assert (target.size.height - unit) * size.width < (target.size.width + unit) * size.height


@given(SIZES, CHECKPOINTS.filter(lambda checkpoint: checkpoint.max_pixels >= 4 * checkpoint.min_pixels))
def test_without_a_policy_the_count_is_the_engines_own(size: Size, checkpoint: Checkpoint) -> None:
    """The same answer by default: an image shrinks only to what the served model's processor would have made."""
    assume(within_ratio(size, checkpoint))
    family = family_of(checkpoint.family)
    target = plan(size, checkpoint)
    assert target.reached
    assert target.tokens == family.image_tokens(size, checkpoint)
    assert target.size in (size, family.engine_size(size, checkpoint))


def test_limits_too_close_for_a_small_image_keep_its_aspect() -> None:
    """1x6 becomes 128x640 = 80 cells in the processor, more than this cap, so that it would be resized again."""
    tight = QWEN3.with_(max_pixels=80_000)
    assert family_of(tight.family).engine_size(Size(1, 6), tight) == Size(128, 640)
    assert plan(Size(1, 6), tight).size == Size(32, 192)


@given(SIZES, st.sampled_from([QWEN2, QWEN3]), st.integers(200, 16_384))
def test_a_policy_cap_gives_what_an_engine_with_that_cap_would_make(
    size: Size, checkpoint: Checkpoint, cap_tokens: int
) -> None:
    """From 200 cells on no strip overshoots; the engine's floor is far away then too."""
    assume(within_ratio(size, checkpoint) and min(size.width, size.height) >= checkpoint.factor)
    cap = cap_tokens * checkpoint.factor**2
    capped = checkpoint.with_(max_pixels=min(cap, checkpoint.max_pixels))
    expected = family_of(checkpoint.family).image_tokens(size, capped)
    assert plan(size, checkpoint, None, cap_tokens).tokens == expected
    assert plan(size, checkpoint, cap).tokens.tokens <= expected.tokens


def test_conforming_sizes_are_untouched_whatever_their_multiple() -> None:
    for size in (Size(1281, 721), Size(333, 1000), Size(256, 256)):
        assert plan(size, QWEN3, 1280 * 1024) == plan(size, QWEN3)
        assert plan(size, QWEN3).size == size
        assert plan(size, QWEN3).reason is TargetReason.CONFORMING


@pytest.mark.parametrize(
    ("size", "checkpoint", "expected"),
    [
        (Size(1, 1), QWEN2, Size(56, 56)),
        (Size(22, 3), QWEN2, Size(168, 28)),
        (Size(26, 28), QWEN2, Size(56, 84)),
        (Size(332, 27), QWEN2, Size(336, 28)),
        (Size(10, 2000), QWEN2, Size(28, 812)),
        (Size(1, 1), QWEN3, Size(256, 256)),
    ],
)
def test_a_side_below_one_cell_becomes_what_the_processor_makes_of_it(
    size: Size, checkpoint: Checkpoint, expected: Size
) -> None:
    target = plan(size, checkpoint)
    assert target.size == expected == family_of(checkpoint.family).normalised(size, checkpoint)
    assert target.tokens == family_of(checkpoint.family).image_tokens(size, checkpoint)
    assert target.reason is TargetReason.TOO_SMALL


def test_the_policy_cap_binds_the_delivered_pixels_too() -> None:
    """1100x1100 rounds down to 1088x1088, which an engine would take under that cap; what is sent must fit as well."""
    target = plan(Size(1100, 1100), QWEN3, 1088 * 1088)
    assert target.size == Size(1088, 1088)
    assert plan(Size(1100, 1100), QWEN3.with_(max_pixels=1088 * 1088)).size == Size(1100, 1100)


def test_a_cap_below_the_floor_is_a_typed_outcome_at_the_floor() -> None:
    small = plan(Size(300, 300), QWEN3, None, 16)
    assert (small.reached, small.reason) == (False, TargetReason.CAP_UNREACHABLE)
    assert (small.size, small.tokens.tokens) == (Size(256, 256), 64)
    large = plan(Size(4000, 2000), QWEN3, None, 16)
    assert (large.reached, large.tokens.tokens) == (False, 66)
    assert family_of(QWEN3.family).knob == "mm_processor_kwargs.min_pixels"


def test_images_are_not_enlarged_to_meet_a_cap() -> None:
    target = plan(Size(100, 70), QWEN3, None, 66)
    assert (target.size, target.tokens.tokens, target.reached) == (Size(100, 70), 70, False)


def test_a_narrow_page_under_a_small_cap_keeps_one_cell() -> None:
    target = plan(Size(690, 15_420), QWEN2, 12_544)
    assert (target.size, target.tokens.tokens, target.reason) == (Size(28, 448), 16, TargetReason.POLICY_CAP)


def test_an_engine_whose_cap_is_near_its_floor_is_left_to_shrink_by_itself() -> None:
    """1000x700 under a cap of 64 cells comes out as 9x6, which the same engine would enlarge to 10x7 if we sent it."""
    tight = QWEN3.with_(max_pixels=65_536)
    target = plan(Size(1000, 700), tight)
    assert (target.size, target.reason, target.tokens.tokens) == (Size(1000, 700), TargetReason.ENGINE_RESIZES, 54)


def test_the_reason_tells_the_engines_cap_from_the_policys() -> None:
    capped = QWEN3.with_(max_pixels=1280 * 1024)
    engine = plan(Size(4032, 3024), capped)
    assert (engine.size, engine.reason) == (Size(1312, 960), TargetReason.ENGINE_CAP)
    assert plan(Size(4032, 3024), capped, 2_000_000).reason is TargetReason.ENGINE_CAP
    assert plan(Size(4032, 3024), capped, 500_000).reason is TargetReason.POLICY_CAP


@pytest.mark.parametrize("caps", [{"pixels": 0}, {"tokens": -1}])
def test_a_cap_must_be_positive(caps: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        plan(Size(10, 10), QWEN3, **caps)


def test_an_image_without_area_is_undecodable() -> None:
    for size in (Size(0, 5), Size(5, 0), Size(-3, 9)):
        with pytest.raises(Undecodable):
            plan(size, QWEN3)
        with pytest.raises(Undecodable):
            family_of(QWEN3.family).image_tokens(size, QWEN3)


def test_the_processor_and_the_plan_share_the_ratio_limit() -> None:
    wide = replace(QWEN2, max_ratio=300)
    assert plan(Size(28, 28 * 250), wide).size == Size(28, 28 * 250)
    assert smart_resize(Size(200, 1), factor=28, min_pixels=3136, max_pixels=10**7).pixels > 0
