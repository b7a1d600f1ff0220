"""Caps of single images, and what a limit on all of them leaves each."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gateway.models.caps import Caps
from gateway.stages.shares import common_cap, lowered, own_caps
from tests.policy.examples import call, part, policy


def test_the_smaller_of_all_caps_holds_and_sides_follow_the_count() -> None:
    one, three = call(part()), call(part(0), part(1), part(2))
    assert own_caps(policy(), one) == [Caps(None, None)]
    assert own_caps(policy(max_pixels=5000, max_side=((1, 900), (3, 300))), one) == [Caps(5000, 900)]
    assert [cap.side for cap in own_caps(policy(max_side=((2, 300),)), one)] == [None]
    assert [cap.side for cap in own_caps(policy(max_side=((1, 900), (3, 300))), three)] == [300, 300, 300]


def test_detail_is_worth_what_the_policy_says() -> None:
    levels = (("auto", 9000), ("high", None), ("low", 4000))
    asked = call(*[replace(part(), detail=level) for level in ("low", "high", "auto", None, "original")])
    found = own_caps(policy(detail=levels, max_pixels=8000), asked)
    assert [cap.pixels for cap in found] == [4000, 8000, 8000, 8000, 8000]
    assert [cap.pixels for cap in own_caps(policy(detail=levels), asked)] == [4000, None, 9000, 9000, None]
    assert [cap.pixels for cap in own_caps(policy(), asked)] == [None] * 5


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=30), st.integers(0, 10**8))
def test_the_common_cap_is_the_largest_that_keeps_the_total(pixels: list[int], total: int) -> None:
    cap = common_cap(pixels, total)
    assert sum(min(own, cap) for own in pixels) <= total
    if sum(pixels) > total:
        assert sum(min(own, cap + 1) for own in pixels) > total


def test_only_images_above_the_common_cap_are_lowered() -> None:
    caps = [Caps(None, 500), Caps(9000), Caps(None)]
    assert lowered(caps, [1000, 1000, 1000], 3000) == caps
    assert lowered(caps, [100, 5000, 5000], 2100) == [caps[0], Caps(1000), Caps(1000)]
