"""Step3-VL: an overview of 728, and windows of 504 laid over the image at its own size, up to 3,024 pixels a side.

Each side is stretched to whole windows, rounded up from a fifth of one. An image shorter than 728 has no windows unless
it is longer than 3:2; its windows are then as wide as its short side, as those of a large image longer than 4:1 are
where that is below 504. A thin image (under 32 pixels, longer than 4:1) is padded to a square first. Overview 169
tokens, window 81; two tokens stand around each, and one between rows of windows. Scaled to 3,024 pixels, a strip
that is not thin may have nothing left of its short side, by which the processor then divides: refused here. Checked
against vLLM 0.32.0 (`Step3VLImageProcessor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import TileShape, refuse_strip, shrunk_to
from gateway.types import Size

_LONGEST: Final = 3024
_THIN: Final = 32
_SMALL_RATIO: Final = 1.5
_LARGE_RATIO: Final = 4
_NEXT_WINDOW: Final = 0.2


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    canvas, view_patches = Size(tiles.view_side, tiles.view_side), (tiles.view_side // checkpoint.patch) ** 2
    columns, rows = _windows(_scaled(size), tiles)
    count = columns * rows
    tokens, struct = tiles.view_tokens + tiles.tokens * count, 2 + 2 * count + max(0, rows - 1)
    patches = view_patches + count * (tiles.side // checkpoint.patch) ** 2
    return Cut(tokens, struct, columns, rows, canvas, patches)


def _scaled(size: Size) -> Size:
    """The raster before windows: a thin one made square, then below the longest side, both sides rounded down."""
    width, height = size.width, size.height
    if _is_thin(size):
        width = height = max(width, height)
    if max(width, height) > _LONGEST:
        scale = _LONGEST / max(width, height)
        width, height = int(width * scale), int(height * scale)
        if width < 1 or height < 1:
            refuse_strip(size)
    return Size(width, height)


def _is_thin(size: Size) -> bool:
    ratio = size.width / size.height
    return min(size.width, size.height) < _THIN and (ratio > _LARGE_RATIO or ratio < 1 / _LARGE_RATIO)


def _windows(size: Size, tiles: TileShape) -> tuple[int, int]:
    """Columns and rows of windows; none of either where the image has none."""
    long, short = max(size.width, size.height), min(size.width, size.height)
    if long < tiles.view_side:
        window = short if long / short > _SMALL_RATIO else 0
    else:
        window = min(short, tiles.side) if long / short > _LARGE_RATIO else tiles.side
    if window == 0:
        return 0, 0
    return _along(size.width, window), _along(size.height, window)


def _along(length: int, window: int) -> int:
    ratio = length / window
    if ratio < 1:
        return 1
    whole = length // window
    return int(ratio) + 1 if ratio - whole > _NEXT_WINDOW else int(ratio)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    """The raster before windows; a thin image keeps its size, since the square around it is not its content."""
    return size if _is_thin(size) else _scaled(size)


def _shrunk(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    """Just short of one more window, just short of any window, and whole windows."""
    tiles = shape_of(checkpoint)
    counts = range(1, ceil(_LONGEST / tiles.side) + 1)
    lengths = [int((count + _NEXT_WINDOW) * tiles.side) for count in counts]
    return shrunk_to(size, [*lengths, tiles.view_side - 1, *(count * tiles.side for count in counts)])


STEP3_VL: Final = TiledFamily("step3_vl", "none: the processor's sizes are fixed", _cut, _fitted, _shrunk)
