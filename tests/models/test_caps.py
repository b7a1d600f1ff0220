from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.models.caps import Caps, plan_within
from gateway.models.catalog import shipped_catalog
from gateway.models.families import family_of
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
FAMILY = family_of(CHECKPOINT.family)


def planned(size: Size, caps: Caps, tokens: int | None = None) -> Size:
    return plan_within(size, FAMILY, CHECKPOINT, caps, tokens).size


def test_without_caps_it_is_the_familys_plan() -> None:
    size = Size(1920, 1080)
    assert planned(size, Caps()) == FAMILY.plan(size, CHECKPOINT, cap_pixels=None, cap_tokens=None).size


def test_the_longer_side_is_met_and_the_shape_kept() -> None:
    assert planned(Size(4000, 3000), Caps(side=2048)) == Size(2048, 1536)
    wide = planned(Size(6000, 400), Caps(side=2000))
    assert wide.width <= 2000
    assert 12 < wide.width / wide.height < 18


def test_a_side_that_no_size_of_the_family_meets_is_told() -> None:
    target = plan_within(Size(3000, 20), FAMILY, CHECKPOINT, Caps(side=56))
    assert not target.reached


@settings(max_examples=60)
@given(st.integers(200, 6000), st.integers(200, 6000), st.integers(256, 4000), st.integers(100_000, 4_000_000))
def test_both_caps_hold(width: int, height: int, side: int, pixels: int) -> None:
    target = plan_within(Size(width, height), FAMILY, CHECKPOINT, Caps(pixels, side))
    if target.reached:
        assert max(target.size.width, target.size.height) <= max(side, 1)
        assert target.size.pixels <= pixels
