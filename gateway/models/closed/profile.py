"""What a closed API charges for an image, as its vendor documents it.

Decided here: the shape of such a profile. Not decided here: the formulas (one file per vendor). They are documented,
not observed: the vendors publish no processor, so nothing here takes part in a decision about a request. They serve
comparison, in ``vlm-gateway estimate``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from gateway.models.geometry import check_sides
from gateway.types import Size

# A raster's sides in pixels, fractional once scaled: vendors do not document that they round.
Sides = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ClosedTokens:
    """The price of one image in tokens, and the size it is looked at."""

    tokens: int
    size: Size


Counter = Callable[[Size], ClosedTokens]


@dataclass(frozen=True, slots=True)
class ClosedProfile:
    """One vendor's rule for the models that share it. ``levels`` maps the ``detail`` of a request to its counter."""

    name: str
    levels: Mapping[str, Counter]
    default_level: str

    def image_tokens(self, size: Size, detail: str | None = None) -> ClosedTokens:
        """The price at a level of detail. Raises `Undecodable` without area, `ValueError` for an unknown level."""
        check_sides(size)
        level = self.default_level if detail is None or detail == "auto" else detail
        if level not in self.levels:
            raise ValueError(f"detail: {self.name} knows {', '.join(self.levels)}, not {level!r}")
        return self.levels[level](size)


def fitted(sides: Sides, longest: float) -> Sides:
    """Scaled down, never up, until the longer side is at most ``longest``."""
    width, height = sides
    if max(width, height) <= longest:
        return sides
    scale = longest / max(width, height)
    return width * scale, height * scale


def cells(sides: Sides, unit: float) -> int:
    """Squares of ``unit`` pixels that cover a raster."""
    return ceil(sides[0] / unit) * ceil(sides[1] / unit)


def priced(tokens: int, sides: Sides) -> ClosedTokens:
    """A price with the size in whole pixels."""
    return ClosedTokens(tokens, Size(max(1, round(sides[0])), max(1, round(sides[1]))))
