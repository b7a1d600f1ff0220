"""Sizes on the grid of patches: the engines' own resize rule and its inverse.

Decided here: which width and height a processor of the Qwen kind makes of an image, and which sizes such a processor
leaves alone. Not decided here: which cap holds (families plan with caps, policies choose them). All sizes are pixels
after orientation; `factor` is the side of one token's square (patch x merge), 28 or 32 for the families here.

Source of the rule: `smart_resize` of transformers 5.19.0 (`models/qwen2_vl`), unchanged since 4.57.6 and used by both
vLLM 0.32.0 and SGLang 0.5.23 on their image path.
"""

from __future__ import annotations

from math import ceil, floor, sqrt
from typing import Final

from gateway.errors import AspectRatioExceeded, Undecodable
from gateway.models.checkpoint import Checkpoint
from gateway.types import Size

# Exactly 200:1 still passes (transformers 5.19.0, qwen2_vl image processor).
QWEN_MAX_RATIO: Final = 200


def check_sides(size: Size) -> None:
    """Raise `Undecodable` unless both sides are at least one pixel."""
    if size.width < 1 or size.height < 1:
        raise Undecodable(f"The image has no area: its header says {size}.")


def check_ratio(size: Size, max_ratio: float) -> None:
    """Raise `AspectRatioExceeded` when the long side is more than `max_ratio` times the short one."""
    long, short = max(size.width, size.height), min(size.width, size.height)
    if long / short > max_ratio:
        raise AspectRatioExceeded(
            f"The image's sides differ by {long / short:.1f}:1 ({size}); the model accepts at most {max_ratio:g}:1."
        )


def check_caps(cap_pixels: int | None, cap_tokens: int | None) -> None:
    """Raise `ValueError` naming the cap that allows nothing at all."""
    for name, cap in (("cap_pixels", cap_pixels), ("cap_tokens", cap_tokens)):
        if cap is not None and cap < 1:
            raise ValueError(f"{name} must be at least 1, not {cap}")


def smart_resize(
    size: Size, *, factor: int, min_pixels: int, max_pixels: int, max_ratio: float = QWEN_MAX_RATIO
) -> Size:
    """The size that the engine's processor makes of `size`: both sides multiples of `factor`, area within the limits.

    Rounding is half to even, and a side below half a unit rounds to none, so that the *minimum* rule then applies:
    a 10x2000 strip comes out shorter, not longer. The order of the floating-point operations is the processor's; an
    algebraically equal form gives other sizes. Where the short side is clamped to one unit the area may exceed
    `max_pixels`, as in the processor. Raises `AspectRatioExceeded` beyond `max_ratio`, `Undecodable` without area.
    """
    width, height = size.width, size.height
    if width < 1 or height < 1:
        check_sides(size)
    if max(height, width) / min(height, width) > max_ratio:
        check_ratio(size, max_ratio)
    rows, columns = round(height / factor), round(width / factor)
    area = rows * columns * factor * factor
    if area > max_pixels:
        shrink = sqrt(height * width / max_pixels)
        rows = max(1, floor(height / shrink / factor))
        columns = max(1, floor(width / shrink / factor))
    elif area < min_pixels:
        grow = sqrt(min_pixels / (height * width))
        rows = ceil(height * grow / factor)
        columns = ceil(width * grow / factor)
    return Size(columns * factor, rows * factor)


def normalised_size(size: Size, checkpoint: Checkpoint) -> Size:
    """The smallest enlargement of `size`, aspect kept, whose sides are both at least one grid unit; else `size`.

    Engines have crashed on sides below one grid unit, so the gateway never forwards them. The result is not aligned
    to the grid. Raises `AspectRatioExceeded` where no such size is within the limit, `Undecodable` without area.
    """
    check_sides(size)
    check_ratio(size, checkpoint.max_ratio)
    factor, short = checkpoint.factor, min(size.width, size.height)
    if short >= factor:
        return size
    return Size(round(size.width * factor / short), round(size.height * factor / short))


def is_settled(size: Size, checkpoint: Checkpoint) -> bool:
    """Whether the processor leaves `size` exactly as it is: on the grid, within the limits, not too long."""
    factor = checkpoint.factor
    return (
        size.width % factor == 0
        and size.height % factor == 0
        and checkpoint.min_pixels <= size.pixels <= checkpoint.max_pixels
        and max(size.width, size.height) <= checkpoint.max_ratio * min(size.width, size.height)
    )


def keeps_aspect(size: Size, target: Size, factor: int) -> bool:
    """Whether one scale of `size` exists at which neither side of `target` is off by a whole grid unit."""
    return (target.width - factor) * size.height < (target.height + factor) * size.width and (
        target.height - factor
    ) * size.width < (target.width + factor) * size.height


def trimmed(fitted: Size, cap_pixels: int, checkpoint: Checkpoint) -> Size:
    """`fitted` with its long side cut back on the grid to keep the cap and the aspect limit; at least one cell.

    `smart_resize` clamps the short side to one cell but not the area, so it overshoots a cap of fewer cells than the
    aspect ratio; and rounding the short side down can push the result beyond the ratio that the processor accepts.
    """
    factor = checkpoint.factor
    long, short = max(fitted.width, fitted.height), min(fitted.width, fitted.height)
    longest = min(long, int(short * checkpoint.max_ratio), cap_pixels // short)
    return _oriented(fitted, max(longest // factor * factor, factor), short)


def smallest_settled(size: Size, checkpoint: Checkpoint) -> Size:
    """The floor: the smallest grid at the aspect of `size` that the engine neither enlarges nor refuses.

    Only grids that are their own floor count, so that the floor of a floor is itself; among those the cheapest, then
    the nearest aspect. Shapes that have none (more than 50:1 under a `min_pixels` of more than 200 cells) get the
    floor of the cheapest grid near them, which may not keep their aspect. Costs some tens of microseconds.
    """
    factor = checkpoint.factor
    units = ceil(checkpoint.min_pixels / (factor * factor))
    long, short = max(size.width, size.height), min(size.width, size.height)
    while True:
        grids = sorted(_grids(long, short, units, checkpoint.max_ratio))
        for cells, _, across, along in grids:
            own = _grids(max(across, along), min(across, along), units, checkpoint.max_ratio)
            if min(own)[0] == cells:
                return _oriented(size, along * factor, across * factor)
        _, _, across, along = grids[0]
        long, short = max(across, along), min(across, along)


def _grids(long: int, short: int, units: int, max_ratio: float) -> list[tuple[int, float, int, int]]:
    """Grids of at least `units` cells that keep the aspect: (cells, distance in aspect, across, along).

    For each count of cells across, the fewest along. Around the exact scale there are at most six, and at least one:
    the exact scale rounded up on both sides.
    """
    exact = floor(sqrt(units * short / long))
    found = []
    for across in range(max(1, exact - 2), exact + 4):
        along = max(ceil(units / across), (across - 1) * long // short, 1)
        if (along - 1) * short < (across + 1) * long and max(across, along) <= max_ratio * min(across, along):
            found.append((across * along, abs(along / across - long / short), across, along))
    return found


def _oriented(size: Size, long: int, short: int) -> Size:
    return Size(long, short) if size.width >= size.height else Size(short, long)
