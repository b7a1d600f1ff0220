"""MiniCPM-V 4.6: cut like MiniCPM-V 2.6, but overview and slices keep their own number of tokens.

Each raster's sides are multiples of four patches of 14, and `merge` x `merge` patches become one token: 4 in the
checkpoint's 16x mode, 2 in its 4x mode (aligned to four patches all the same; transformers 5.24 aligns that mode to
two). Checked against transformers 5.19.0 (`MiniCPMV4_6Processor`).
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.minicpmv import by_area, overview, slice_of, slice_struct
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import split_by_area
from gateway.types import Size

_ALIGNED_PATCHES: Final = 4


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles, patch = shape_of(checkpoint), checkpoint.patch
    unit, per_token = patch * _ALIGNED_PATCHES, checkpoint.merge**2
    grid = split_by_area(size, tiles.side, tiles.most)
    view = overview(size, tiles.side, unit, cut=grid is not None)
    patches = (view.width // patch) * (view.height // patch)
    if grid is None:
        return Cut(patches // per_token, 5, 1, 1, view, patches)
    columns, rows = grid
    one = slice_of(size, grid, tiles.side, unit)
    each = (one.width // patch) * (one.height // patch)
    tokens = patches // per_token + columns * rows * (each // per_token)
    return Cut(tokens, slice_struct(grid), columns, rows, view, patches + columns * rows * each)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    if cut.columns * cut.rows == 1:
        return cut.canvas
    tiles = shape_of(checkpoint)
    one = slice_of(size, (cut.columns, cut.rows), tiles.side, checkpoint.patch * _ALIGNED_PATCHES)
    return Size(one.width * cut.columns, one.height * cut.rows)


MINICPMV4_6: Final = TiledFamily(
    "minicpmv4_6", "mm_processor_kwargs.max_slice_nums", _cut, _fitted, by_area, numbered=True
)
