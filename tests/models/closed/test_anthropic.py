"""Anthropic's rules hold their caps at every size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.models.closed.anthropic import BEFORE_4_7, BY_AREA, FROM_4_7
from gateway.types import Size

SIDES = st.integers(1, 100_000)


@given(SIDES, SIDES)
def test_caps_hold(width: int, height: int) -> None:
    size = Size(width, height)
    for profile, longest, most in ((BEFORE_4_7, 1568, 1568), (FROM_4_7, 2576, 4784)):
        price = profile.image_tokens(size)
        assert 1 <= price.tokens <= most
        assert max(price.size.width, price.size.height) <= longest
    assert 1 <= BY_AREA.image_tokens(size).tokens <= 1601


def test_an_image_within_the_caps_keeps_its_size() -> None:
    assert BEFORE_4_7.image_tokens(Size(1280, 720)).tokens == 46 * 26
    assert BY_AREA.image_tokens(Size(1000, 750)).tokens == 1000
