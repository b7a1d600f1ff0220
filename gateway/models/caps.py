"""The caps of one image: on its pixels and on its longer side; and the plan within both.

Decided here: how a cap on the longer side is met with families that only know areas. Not decided here: the caps
(policy), how sizes fall on a grid (the family).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Family, Target
from gateway.types import Size

# Each try takes off at least what is too long; grids make a second and third one necessary.
_MOST_TRIES: Final = 12


@dataclass(frozen=True, slots=True)
class Caps:
    """``None`` = no cap of the policy's; the checkpoint's own cap holds in any case."""

    pixels: int | None = None
    side: int | None = None


def plan_within(
    size: Size, family: Family, checkpoint: Checkpoint, caps: Caps, cap_tokens: int | None = None
) -> Target:
    """The family's plan within all caps. ``reached`` is false where the family has no size that small.

    Raises what `Family.plan` raises.
    """
    target = family.plan(size, checkpoint, cap_pixels=caps.pixels, cap_tokens=cap_tokens)
    if caps.side is None:
        return target
    for _ in range(_MOST_TRIES):
        longest = max(target.size.width, target.size.height)
        if longest <= caps.side or not target.reached:
            return target
        pixels = min(target.size.pixels - 1, target.size.pixels * caps.side**2 // longest**2)
        target = family.plan(size, checkpoint, cap_pixels=max(1, pixels), cap_tokens=cap_tokens)
    return replace(target, reached=max(target.size.width, target.size.height) <= caps.side)
