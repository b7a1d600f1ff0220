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


def is_on_grid(size: Size, factor: int) -> bool:
    """Whether both sides are multiples of `factor`."""
    return size.width % factor == 0 and size.height % factor == 0


def capped_strip(size: Size, *, factor: int, cap_pixels: int) -> Size | None:
    """One unit wide and as long as the cap allows; `None` unless `size` is so narrow that this is its true shape.

    `smart_resize` clamps the short side to one unit but not the area, so it overshoots a cap of fewer units than the
    aspect ratio. Along the scale of `size` the short side then lies below one unit, which makes this strip the grid
    nearest to the right aspect.
    """
    units = cap_pixels // (factor * factor)
    if units < 1:
        return None
    long, short = max(size.width, size.height), min(size.width, size.height)
    if units * short >= long:
        return None
    return _oriented(size, units * factor, factor)


def is_at_floor(size: Size, *, factor: int, min_pixels: int) -> bool:
    """Whether `size` is on the grid, large enough for the engine, and within one unit per side of the minimum."""
    if not is_on_grid(size, factor) or size.pixels < min_pixels:
        return False
    return (size.width - factor) * (size.height - factor) < min_pixels


def smallest_settled(size: Size, *, factor: int, min_pixels: int, max_ratio: float = QWEN_MAX_RATIO) -> Size:
    """The smallest grid at the aspect of `size` that the engine does not enlarge (and does not refuse).

    "At the aspect" means that one scale exists at which neither side is off by a whole unit. Ties go to the grid
    whose aspect is nearest. Looks at a handful of grids around the exact scale, so it costs some microseconds.
    """
    long, short = max(size.width, size.height), min(size.width, size.height)
    units = ceil(min_pixels / (factor * factor))
    exact = floor(sqrt(units * short / long))
    grids: list[tuple[int, float, int, int]] = []
    for across in range(max(1, exact - 2), exact + 4):
        along = max(ceil(units / across), (across - 1) * long // short, 1)
        if (along - 1) * short < (across + 1) * long and max(across, along) <= max_ratio * min(across, along):
            grids.append((across * along, abs(along / across - long / short), across, along))
    _, _, across, along = min(grids)
    return _oriented(size, along * factor, across * factor)


def _oriented(size: Size, long: int, short: int) -> Size:
    return Size(long, short) if size.width >= size.height else Size(short, long)
