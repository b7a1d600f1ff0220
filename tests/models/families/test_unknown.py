from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded, Undecodable
from gateway.models.catalog import shipped_catalog
from gateway.models.families import FAMILIES
from gateway.models.families.unknown import FLOOR_TOKENS, UNKNOWN
from gateway.models.family import TargetReason
from gateway.types import Size

MYSTERY = shipped_catalog().find("mystery-vl").checkpoint
SIDES = st.one_of(st.integers(1, 100_000), st.integers(1, 3_000))
SIZES = st.builds(Size, SIDES, SIDES)
CAPS = st.one_of(st.none(), st.integers(1, 20_000_000), st.integers(1, 300_000))
TOKEN_CAPS = st.one_of(st.none(), st.integers(1, 20_000))


def servable(size: Size) -> bool:
    return max(size.width, size.height) <= MYSTERY.max_ratio * min(size.width, size.height)


@given(SIZES)
def test_the_estimate_is_no_lower_than_the_count_of_any_family_on_a_grid(size: Size) -> None:
    """Those with cells below 28 pixels or a floor above 256 x 256 have entries of their own."""
    assume(servable(size) and min(size.width, size.height) >= 32)
    estimate = UNKNOWN.image_tokens(size, MYSTERY).tokens
    for checkpoint in shipped_catalog().checkpoints:
        coarse = checkpoint.factor >= 28 and checkpoint.min_pixels <= 65_536
        for family in FAMILIES:
            if family.name == checkpoint.family and coarse and checkpoint.tiles is None:
                with suppress(AspectRatioExceeded):
                    assert family.image_tokens(size, checkpoint).tokens <= estimate


@given(SIZES, CAPS, TOKEN_CAPS)
@example(Size(10, 2000), 1, None)
def test_plans_hold_their_caps_and_hold_still(size: Size, pixels: int | None, tokens: int | None) -> None:
    if not servable(size):
        with pytest.raises(AspectRatioExceeded):
            UNKNOWN.plan(size, MYSTERY, cap_pixels=pixels, cap_tokens=tokens)
        return
    target = UNKNOWN.plan(size, MYSTERY, cap_pixels=pixels, cap_tokens=tokens)
    assert target.tokens == UNKNOWN.image_tokens(target.size, MYSTERY)
    assert target.size.pixels <= max(size.pixels, UNKNOWN.normalised(size, MYSTERY).pixels)
    assert min(target.size.width, target.size.height) >= MYSTERY.factor
    if target.reached:
        assert pixels is None or target.size.pixels <= pixels
        assert tokens is None or target.tokens.tokens <= tokens
    again = UNKNOWN.plan(target.size, MYSTERY, cap_pixels=pixels, cap_tokens=tokens)
    assert again.size == target.size


def test_without_a_cap_nothing_is_shrunk() -> None:
    target = UNKNOWN.plan(Size(8000, 6000), MYSTERY)
    assert (target.size, target.reason) == (Size(8000, 6000), TargetReason.CONFORMING)
    assert UNKNOWN.engine_size(Size(8000, 6000), MYSTERY) == Size(8000, 6000)


def test_a_cap_is_kept_at_the_right_aspect() -> None:
    target = UNKNOWN.plan(Size(4000, 3000), MYSTERY, cap_pixels=1_003_520)
    assert (target.size, target.reason) == (Size(1148, 840), TargetReason.POLICY_CAP)


def test_a_token_cap_below_the_floor_is_unreachable_but_shrinks_to_it() -> None:
    target = UNKNOWN.plan(Size(4000, 3000), MYSTERY, cap_tokens=10)
    assert (target.reached, target.tokens.tokens) == (False, FLOOR_TOKENS)
    assert target.size.pixels <= FLOOR_TOKENS * 784


def test_too_small_a_side_is_enlarged_at_its_own_aspect() -> None:
    target = UNKNOWN.plan(Size(56, 14), MYSTERY)
    assert (target.size, target.reason) == (Size(112, 28), TargetReason.TOO_SMALL)


def test_an_image_without_area_is_undecodable() -> None:
    for ask in (UNKNOWN.image_tokens, UNKNOWN.engine_size):
        with pytest.raises(Undecodable):
            ask(Size(3, 0), MYSTERY)


def test_several_images_are_priced_one_by_one() -> None:
    first, second = UNKNOWN.request_tokens([Size(56, 56), Size(2800, 28)], MYSTERY)
    assert (first.tokens, second.tokens) == (FLOOR_TOKENS, FLOOR_TOKENS)
