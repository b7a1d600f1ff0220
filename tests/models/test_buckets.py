"""Buckets: the one that keeps most, never above the target, never a visible squeeze."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.models.buckets import MAX_DISTORTION, snapped
from gateway.models.catalog import shipped_catalog
from gateway.models.families import family_of
from gateway.models.family import Target
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
FAMILY = family_of(CHECKPOINT.family)
BUCKETS = (Size(448, 448), Size(896, 448), Size(448, 896), Size(896, 896))


def planned(size: Size) -> Target:
    return FAMILY.plan(size, CHECKPOINT, cap_pixels=None, cap_tokens=None)


def snap(size: Size) -> Size | None:
    found = snapped(planned(size), FAMILY, CHECKPOINT, BUCKETS)
    return None if found is None else found.size


def test_an_image_goes_to_the_largest_bucket_of_its_shape() -> None:
    assert snap(Size(1000, 1000)) == Size(896, 896)
    assert snap(Size(1000, 480)) == Size(896, 448)
    assert snap(Size(800, 760)) == Size(448, 448)
    assert snap(Size(896, 896)) == Size(896, 896)


def test_what_no_bucket_resembles_keeps_its_size() -> None:
    assert snap(Size(3000, 100)) is None
    assert snap(Size(300, 300)) is None
    assert snapped(planned(Size(1000, 1000)), FAMILY, CHECKPOINT, ()) is None


@given(st.integers(32, 5000), st.integers(32, 5000))
def test_a_bucket_never_costs_more_and_is_its_own(width: int, height: int) -> None:
    size = Size(width, height)
    if max(width, height) > 200 * min(width, height):
        return
    target = planned(size)
    found = snapped(target, FAMILY, CHECKPOINT, BUCKETS)
    if found is None:
        return
    assert found.size.pixels <= target.size.pixels
    assert found.tokens.tokens <= target.tokens.tokens
    across, down = found.size.width / target.size.width, found.size.height / target.size.height
    assert max(across, down) <= MAX_DISTORTION * min(across, down)
    again = snapped(planned(found.size), FAMILY, CHECKPOINT, BUCKETS)
    assert again is not None
    assert again.size == found.size
