"""Gemini: tiles of 258 tokens in version 2, a fixed price by resolution in version 3.

Source: the vendor's pages on image understanding and media resolution, as they stood in November 2026.
"""

from __future__ import annotations

from functools import partial
from math import floor
from types import MappingProxyType
from typing import Final

from gateway.models.closed.profile import ClosedProfile, ClosedTokens, Counter, cells, priced
from gateway.types import Size

_TOKENS: Final = 258
_SMALL_SIDE: Final = 384
_LEAST_UNIT: Final = 256
_LARGEST_UNIT: Final = 768


def _by_tile(size: Size) -> ClosedTokens:
    """258 up to 384 square; else 258 for each tile, whose side follows the shorter side of the image."""
    sides = (size.width, size.height)
    if max(sides) <= _SMALL_SIDE:
        return priced(_TOKENS, sides)
    unit = min(max(floor(min(sides) / 1.5), _LEAST_UNIT), _LARGEST_UNIT)
    return priced(_TOKENS * cells(sides, unit), sides)


def _fixed(size: Size, *, tokens: int) -> ClosedTokens:
    return priced(tokens, (size.width, size.height))


_LEVELS_3: Final[dict[str, Counter]] = {
    "low": partial(_fixed, tokens=280),
    "medium": partial(_fixed, tokens=560),
    "high": partial(_fixed, tokens=1120),
}
GEMINI_2: Final = ClosedProfile("gemini-2", MappingProxyType({"high": _by_tile}), "high")
GEMINI_3: Final = ClosedProfile("gemini-3", MappingProxyType(_LEVELS_3), "high")
