"""OpenAI: tiles of 512 pixels for the older models, patches of 32 pixels for the newer ones.

Source: the vendor's page on images and vision, as it stood in November 2026: its worked examples are met
(1024x1024 -> 765, 2048x4096 -> 1105, and 1800x2400 -> 1452 patches).
"""

from __future__ import annotations

from functools import partial
from math import ceil, floor, sqrt
from types import MappingProxyType
from typing import Final

from gateway.models.closed.profile import ClosedProfile, ClosedTokens, Counter, cells, fitted, priced
from gateway.types import Size

_TILE_SQUARE: Final = 2048
_TILE_SHORT_SIDE: Final = 768
_TILE: Final = 512
_PATCH: Final = 32
# The side of a patch grid is whole after the second scaling; what floating point leaves over is no further patch.
_NOISE: Final = 1e-9
_LOW_SQUARE: Final = 512


def _by_tile(size: Size, *, base: int, tile: int) -> ClosedTokens:
    """Fit into 2048 square, bring the short side down to 768, count tiles of 512."""
    width, height = fitted((size.width, size.height), _TILE_SQUARE)
    if min(width, height) > _TILE_SHORT_SIDE:
        scale = _TILE_SHORT_SIDE / min(width, height)
        width, height = width * scale, height * scale
    return priced(base + tile * cells((width, height), _TILE), (width, height))


def _at_base(size: Size, *, base: int) -> ClosedTokens:
    return priced(base, fitted((size.width, size.height), _LOW_SQUARE))


def _by_patch(size: Size, *, patches: int | None, longest: int | None, factor: float = 1.0) -> ClosedTokens:
    """Patches of 32 within a cap; above it scaled to the cap and then to whole patches on the tighter side."""
    sides: tuple[float, float] = (size.width, size.height)
    if longest is not None:
        sides = fitted(sides, longest)
    count = cells(sides, _PATCH)
    if patches is not None and count > patches:
        width, height = sides
        scale = sqrt(_PATCH**2 * patches / (width * height))
        across, along = width * scale / _PATCH, height * scale / _PATCH
        scale *= min(floor(across) / across, floor(along) / along)
        sides = (width * scale, height * scale)
        count = max(1, ceil(sides[0] / _PATCH - _NOISE)) * max(1, ceil(sides[1] / _PATCH - _NOISE))
    return priced(ceil(count * factor), sides)


def _tiles(name: str, base: int, tile: int) -> ClosedProfile:
    levels: dict[str, Counter] = {
        "low": partial(_at_base, base=base),
        "high": partial(_by_tile, base=base, tile=tile),
    }
    return ClosedProfile(name, MappingProxyType(levels), "high")


def _patches(
    name: str,
    patches: int | None,
    longest: int | None,
    *,
    factor: float = 1.0,
    original: tuple[int | None, int | None] | None = None,
    default: str = "high",
) -> ClosedProfile:
    """``low`` is documented as "about 512 x 512", and priced as that."""
    levels: dict[str, Counter] = {
        "low": partial(_by_patch, patches=(_LOW_SQUARE // _PATCH) ** 2, longest=_LOW_SQUARE, factor=factor),
        "high": partial(_by_patch, patches=patches, longest=longest, factor=factor),
    }
    if original is not None:
        levels["original"] = partial(_by_patch, patches=original[0], longest=original[1], factor=factor)
    return ClosedProfile(name, MappingProxyType(levels), default)


# Model name -> profile. A dated name (gpt-4o-2024-08-06) is its undated one.
PROFILES: Final = MappingProxyType({
    "gpt-4o": _tiles("gpt-4o", 85, 170),
    "gpt-4.1": _tiles("gpt-4.1", 85, 170),
    "gpt-4.5": _tiles("gpt-4.5", 85, 170),
    "gpt-4o-mini": _tiles("gpt-4o-mini", 2833, 5667),
    "gpt-5": _tiles("gpt-5", 70, 140),
    "gpt-5-chat": _tiles("gpt-5-chat", 70, 140),
    "o1": _tiles("o1", 75, 150),
    "o1-pro": _tiles("o1-pro", 75, 150),
    "o3": _tiles("o3", 75, 150),
    "computer-use": _tiles("computer-use", 65, 129),
    "gpt-4.1-mini": _patches("gpt-4.1-mini", 1536, None, factor=1.62),
    "gpt-4.1-nano": _patches("gpt-4.1-nano", 1536, None, factor=2.46),
    "o4-mini": _patches("o4-mini", 1536, None, factor=1.72),
    "gpt-5-mini": _patches("gpt-5-mini", 1536, 2048, factor=1.62),
    "gpt-5-nano": _patches("gpt-5-nano", 1536, 2048, factor=2.46),
    "gpt-5.2": _patches("gpt-5.2", 1536, 2048),
    "gpt-5.4-mini": _patches("gpt-5.4-mini", 1536, 2048, factor=1.62),
    "gpt-5.4-nano": _patches("gpt-5.4-nano", 1536, 2048, factor=2.46),
    "gpt-5.4": _patches("gpt-5.4", 2500, 2048, original=(10_000, 6000)),
    "gpt-5.5": _patches("gpt-5.5", 2500, 2048, original=(10_000, 6000), default="original"),
    "gpt-5.6": _patches("gpt-5.6", 2500, 2048, original=(None, None), default="original"),
})  # fmt: skip
