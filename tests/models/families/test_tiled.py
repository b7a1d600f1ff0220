"""The tile families' promises: the engine's own count, never above a cap, and a plan that holds still."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded, Undecodable
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import family_of
from gateway.models.families.tiled import TiledFamily, shape_of, stretched
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import keeps_aspect
from gateway.models.tiling import TileEngine
from gateway.types import Size

# One checkpoint of each family with tiles, and the engines and settings that count otherwise.
FIRST = {c.family: c for c in reversed(shipped_catalog().checkpoints) if c.tiles is not None}


def changed(family: str, **numbers: object) -> Checkpoint:
    checkpoint = FIRST[family]
    return replace(checkpoint, tiles=replace(shape_of(checkpoint), **numbers))  # type: ignore[arg-type]


CHECKPOINTS = [
    *FIRST.values(),
    changed("internvl", engine=TileEngine.SGLANG),
    changed("internvl", most=6),
    changed("internvl", most=1),
    changed("mllama", engine=TileEngine.SGLANG),
    changed("phi3_5_v", most=16),
    changed("minicpmv", most=4),
    changed("deepseek_ocr", side=1024, least=1, most=1),
    replace(FIRST["minicpmv4_6"], merge=2),
]
CHECKPOINT = st.sampled_from(CHECKPOINTS)
SIDES = st.one_of(st.integers(1, 100_000), st.integers(1, 300), st.integers(1, 4_500))
SIZES = st.builds(Size, SIDES, SIDES)
CAPS = st.one_of(st.none(), st.integers(1, 12_000_000), st.integers(1, 500_000))
TOKEN_CAPS = st.one_of(st.none(), st.integers(1, 9_000), st.integers(1, 1_000))
# The "yes" list of the oracle's page: the processor resizes nothing again. Molmo and the others pad, or are not on it.
SETTLED = {
    "internvl", "aya_vision", "llama4", "mllama", "idefics3", "smolvlm", "phi3_5_v"
}  # fmt: skip


def family(checkpoint: Checkpoint) -> TiledFamily:
    found = family_of(checkpoint.family)
    assert isinstance(found, TiledFamily)
    return found


def plan(size: Size, checkpoint: Checkpoint, pixels: int | None = None, tokens: int | None = None) -> Target:
    return family(checkpoint).plan(size, checkpoint, cap_pixels=pixels, cap_tokens=tokens)


def served(size: Size, checkpoint: Checkpoint) -> bool:
    try:
        family(checkpoint).cut(size, checkpoint)
    except AspectRatioExceeded:
        return False
    return True


@given(SIZES, CHECKPOINT, CAPS, TOKEN_CAPS)
def test_any_size_plans_within_its_caps_or_raises_the_one_error(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    if not served(size, checkpoint):
        assert checkpoint.family in {"phi3_5_v", "phi4_mm", "lfm2_vl"}
        with pytest.raises(AspectRatioExceeded):
            plan(size, checkpoint, pixels, tokens)
        return
    target = plan(size, checkpoint, pixels, tokens)
    assert target.tokens == family(checkpoint).image_tokens(target.size, checkpoint)
    assert target.tokens.tokens <= family(checkpoint).image_tokens(size, checkpoint).tokens
    assert target.size.pixels <= size.pixels
    assert target.reached is (target.reason is not TargetReason.CAP_UNREACHABLE)
    if target.reached:
        assert pixels is None or target.size.pixels <= pixels
        assert pixels is None or family(checkpoint).engine_size(target.size, checkpoint).pixels <= pixels
        assert tokens is None or target.tokens.tokens <= tokens


@given(SIZES, CHECKPOINT, CAPS, TOKEN_CAPS)
@example(Size(6, 449), FIRST["phi4_mm"], None, 1)
def test_planning_a_plan_changes_nothing(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    assume(served(size, checkpoint))
    once = plan(size, checkpoint, pixels, tokens)
    twice = plan(once.size, checkpoint, pixels, tokens)
    assert (twice.size, twice.tokens) == (once.size, once.tokens)


@given(SIZES, CHECKPOINT, st.integers(1, 9_000), st.integers(1, 5_000), CAPS)
def test_a_smaller_cap_never_costs_more(
    size: Size, checkpoint: Checkpoint, cap: int, more: int, pixels: int | None
) -> None:
    assume(served(size, checkpoint))
    small, large = plan(size, checkpoint, pixels, cap), plan(size, checkpoint, pixels, cap + more)
    assert small.tokens.tokens <= large.tokens.tokens <= plan(size, checkpoint).tokens.tokens
    assert small.reached <= large.reached


@given(SIZES, CHECKPOINT, st.integers(1, 12_000_000), st.integers(1, 2_000_000))
def test_a_smaller_pixel_cap_never_costs_more(size: Size, checkpoint: Checkpoint, cap: int, more: int) -> None:
    assume(served(size, checkpoint))
    small, large = plan(size, checkpoint, cap), plan(size, checkpoint, cap + more)
    assert small.tokens.tokens <= large.tokens.tokens
    assert small.reached <= large.reached


@given(SIZES, CHECKPOINT, CAPS, TOKEN_CAPS)
def test_the_aspect_drifts_by_less_than_one_tile(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    """One scale exists at which neither side of the target is a whole tile off."""
    assume(served(size, checkpoint))
    target = plan(size, checkpoint, pixels, tokens)
    if target.reached and target.reason is TargetReason.POLICY_CAP:
        assert keeps_aspect(size, target.size, shape_of(checkpoint).side)


@given(SIZES, CHECKPOINT)
def test_without_a_policy_the_count_is_the_engines_own(size: Size, checkpoint: Checkpoint) -> None:
    """The same answer by default: an image shrinks only to what the served model's processor would have made."""
    assume(served(size, checkpoint))
    target = plan(size, checkpoint)
    assert target.reached
    assert target.tokens == family(checkpoint).image_tokens(size, checkpoint)
    assert target.size == size or target.reason is TargetReason.ENGINE_CAP


@given(SIZES, CHECKPOINT.filter(lambda checkpoint: checkpoint.family in SETTLED), CAPS, TOKEN_CAPS)
def test_what_a_plan_makes_the_engine_does_not_shrink_again(
    size: Size, checkpoint: Checkpoint, pixels: int | None, tokens: int | None
) -> None:
    assume(served(size, checkpoint))
    target = plan(size, checkpoint, pixels, tokens)
    if target.reason is TargetReason.ENGINE_RESIZES or target.size == size:
        return
    cut = family(checkpoint).cut(target.size, checkpoint)
    fitted = family(checkpoint).fitter(target.size, cut, checkpoint)
    assert fitted == target.size or fitted.pixels >= target.size.pixels


@given(st.builds(Size, st.integers(200, 5_000), st.integers(200, 5_000)), st.sampled_from(sorted(SETTLED)))
@example(Size(4032, 3024), "phi3_5_v")
def test_a_photograph_is_shrunk_to_what_the_engine_would_make_of_it(size: Size, name: str) -> None:
    checkpoint = FIRST[name]
    cut = family(checkpoint).cut(size, checkpoint)
    fitted = family(checkpoint).fitter(size, cut, checkpoint)
    target = plan(size, checkpoint)
    if fitted.pixels < size.pixels and target.size != size:
        assert abs(target.size.width - fitted.width) <= 1
        assert abs(target.size.height - fitted.height) <= 1
        again = family(checkpoint).cut(target.size, checkpoint)
        assert family(checkpoint).fitter(target.size, again, checkpoint) == target.size


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda c: c.family)
def test_a_twelve_megapixel_photograph_is_not_passed_whole(checkpoint: Checkpoint) -> None:
    target = plan(Size(4032, 3024), checkpoint)
    assert target.reason is TargetReason.ENGINE_CAP, target
    assert target.size.pixels < 10_000_000


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda c: c.family)
def test_a_cap_below_the_floor_is_a_typed_outcome_with_a_knob(checkpoint: Checkpoint) -> None:
    target = plan(Size(1, 1), checkpoint, None, 1)
    assert (target.size, target.reached, target.reason) == (Size(1, 1), False, TargetReason.CAP_UNREACHABLE)
    assert family(checkpoint).knob


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=lambda c: c.family)
def test_bad_sizes_and_caps_are_named(checkpoint: Checkpoint) -> None:
    for size in (Size(0, 5), Size(5, 0), Size(-3, 9)):
        for question in (family(checkpoint).image_tokens, family(checkpoint).normalised, family(checkpoint).plan):
            with pytest.raises(Undecodable):
                question(size, checkpoint)
        with pytest.raises(Undecodable):
            family(checkpoint).request_tokens([size] * 3, checkpoint)
    for caps, name in ((("cap_pixels", 0)), "cap_pixels"), (("cap_tokens", -1), "cap_tokens"):
        with pytest.raises(ValueError, match=name):
            family(checkpoint).plan(Size(9, 9), checkpoint, **{caps[0]: caps[1]})


def test_a_checkpoint_without_a_tiling_names_what_is_missing() -> None:
    bare = replace(FIRST["internvl"], tiles=None)
    with pytest.raises(ValueError, match=r"tiles: .*InternVL"):
        family(bare).image_tokens(Size(9, 9), bare)


@given(SIZES, CHECKPOINT)
def test_images_of_one_request_cost_what_each_costs_alone_but_for_a_crowd(size: Size, checkpoint: Checkpoint) -> None:
    assume(served(size, checkpoint))
    alone = family(checkpoint).image_tokens(size, checkpoint)
    three = family(checkpoint).request_tokens([size] * 3, checkpoint)
    if checkpoint.family == "deepseek_vl2":
        assert [price.tokens for price in three] == [421] * 3
    else:
        assert three == (alone,) * 3


def test_the_shared_fitter_of_stretching_processors_is_the_canvas() -> None:
    checkpoint = FIRST["internvl"]
    cut = family(checkpoint).cut(Size(1280, 720), checkpoint)
    assert stretched(Size(1280, 720), cut, checkpoint) == Size(1792, 896)
