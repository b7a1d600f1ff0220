"""Anthropic: squares of 28 pixels within a longest side and a number of tokens; earlier documents divide by 750.

Source: the vendor's page on vision, as it stood in November 2026. It says "scaled down with the ratio kept"; the
largest such size in whole pixels is taken.
"""

from __future__ import annotations

from functools import partial
from math import ceil, sqrt
from types import MappingProxyType
from typing import Final

from gateway.models.closed.profile import ClosedProfile, ClosedTokens, Counter, cells, fitted, priced
from gateway.types import Size

_UNIT: Final = 28
# Bisection of the scale: thirty halvings tell sides of a thousand million pixels apart.
_HALVINGS: Final = 30
_OLD_PIXELS_PER_TOKEN: Final = 750
_OLD_TOKENS: Final = 1600
_OLD_LONGEST: Final = 1568


def _by_square(size: Size, *, longest: int, most: int) -> ClosedTokens:
    def scaled(scale: float) -> tuple[int, int]:
        return max(1, round(size.width * scale)), max(1, round(size.height * scale))

    above = min(1.0, longest / max(size.width, size.height))
    if cells(scaled(above), _UNIT) <= most:
        return priced(cells(scaled(above), _UNIT), scaled(above))
    below = 0.0
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        if cells(scaled(middle), _UNIT) <= most:
            below = middle
        else:
            above = middle
    return priced(cells(scaled(below), _UNIT), scaled(below))


def _by_area(size: Size) -> ClosedTokens:
    """Width x height / 750, about 1,600 at most: the cap is met to within the rounding up of the last token."""
    width, height = fitted((size.width, size.height), _OLD_LONGEST)
    if width * height / _OLD_PIXELS_PER_TOKEN > _OLD_TOKENS:
        scale = sqrt(_OLD_TOKENS * _OLD_PIXELS_PER_TOKEN / (width * height))
        width, height = width * scale, height * scale
    return priced(ceil(width * height / _OLD_PIXELS_PER_TOKEN), (width, height))


def _profile(name: str, counter: Counter) -> ClosedProfile:
    return ClosedProfile(name, MappingProxyType({"high": counter}), "high")


BEFORE_4_7: Final = _profile("claude", partial(_by_square, longest=1568, most=1568))
FROM_4_7: Final = _profile("claude-4.7", partial(_by_square, longest=2576, most=4784))
BY_AREA: Final = _profile("claude-by-area", _by_area)
