"""DeepSeek-VL2: the best of 23 canvases of 384-tiles, learnt separators, and an overview; no tiles with three images.

A tile is 27 x 27 patches of 14, merged two by two into 14 x 14 cells. Overview: 14 rows of 14 cells and a separator,
and one token between; tiles: rows of all cells across and a separator. All stand on image positions. In a request of
more than two images each gets one tile. Checked against vLLM 0.32.0 (`DeepseekVLV2Processor`).

The processor pads (Pillow's `ImageOps.pad`); of a strip of which no row is left Pillow 13 makes a canvas of padding.
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import ONE_TILE, Grid, effective_pin, shrunk_to
from gateway.types import Size


def padded(size: Size, width: int, height: int) -> Size:
    """The image within a canvas before it is padded (Pillow's `ImageOps.contain`), at least one pixel a side."""
    aspect, wanted = size.width / size.height, width / height
    if aspect > wanted:
        return Size(width, max(1, round(size.height / size.width * width)))
    if aspect < wanted:
        return Size(max(1, round(size.width / size.height * height)), height)
    return Size(width, height)


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    return _cut_to(checkpoint, effective_pin(size, tiles.side, tiles.pins))


def _uncut(size: Size, checkpoint: Checkpoint) -> Cut:  # noqa: ARG001  # the contract's
    return _cut_to(checkpoint, ONE_TILE)


def _cut_to(checkpoint: Checkpoint, grid: Grid) -> Cut:
    side, (columns, rows) = shape_of(checkpoint).side, grid
    cells = -(-(side // checkpoint.patch) // checkpoint.merge)
    tokens = cells * (cells + 1) + 1 + rows * cells * (columns * cells + 1)
    patches = (columns * rows + 1) * (side // checkpoint.patch) ** 2
    return Cut(tokens, 0, columns, rows, Size(columns * side, rows * side), patches)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    return padded(size, cut.canvas.width, cut.canvas.height)


def _shrunk(size: Size, checkpoint: Checkpoint) -> list[Size]:
    tiles = shape_of(checkpoint)
    longest = max(max(pin) for pin in tiles.pins)
    return shrunk_to(size, [tiles.side * count for count in range(1, longest + 1)])


DEEPSEEK_VL2: Final = TiledFamily(
    "deepseek_vl2",
    "none: candidate_resolutions of the model's configuration",
    _cut,
    _fitted,
    _shrunk,
    crowd_cutter=_uncut,
)
