"""MiniCPM-V 2.6, 4 and 4.5, MiniCPM-o 2.6: an overview and up to 9 slices of about 448 x 448, 64 tokens each.

Every image gets an overview of about one slice's area at its own aspect. An image of more than one slice's area is also
cut, one slice per 448 x 448 pixels, and the slices are scaled to about that area. A resampler makes 64 tokens of each,
whatever its patches. Image number 3 tokens (from 10 on one more a digit), overview 2, each slice 2, one break between
rows of slices. Checked against the checkpoints' own `image_processing_minicpmv.py`, which vLLM 0.32.0 runs too.

MiniCPM-V 4.6 (`minicpmv4_6`) aligns to merged patches and counts them; its functions are shared from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import Grid, shrunk_to_area, split_by_area
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles, patch = shape_of(checkpoint), checkpoint.patch
    grid = split_by_area(size, tiles.side, tiles.most)
    view = overview(size, tiles.side, patch, cut=grid is not None)
    patches = (view.width // patch) * (view.height // patch)
    if grid is None:
        return Cut(tiles.tokens, 5, 1, 1, view, patches)
    columns, rows = grid
    one = slice_of(size, grid, tiles.side, patch)
    patches += columns * rows * (one.width // patch) * (one.height // patch)
    return Cut(tiles.tokens * (1 + columns * rows), slice_struct(grid), columns, rows, view, patches)


def slice_struct(grid: Grid) -> int:
    """Number and overview 5, each slice 2, and a break between the rows."""
    columns, rows = grid
    return 5 + 2 * columns * rows + rows - 1


def overview(size: Size, side: int, unit: int, *, cut: bool) -> Size:
    """The whole image at about `side` x `side` pixels; where it is cut and smaller than that, as it is."""
    return _about(size.width, size.height, side, unit, enlarge=not cut)


def slice_of(size: Size, grid: Grid, side: int, unit: int) -> Size:
    """One slice at about `side` x `side` pixels, each side a multiple of `unit`."""
    columns, rows = grid
    width, height = _nearest_multiple(size.width, columns) / columns, _nearest_multiple(size.height, rows) / rows
    return _about(width, height, side, unit, enlarge=True)


def _about(width: float, height: float, side: int, unit: int, *, enlarge: bool) -> Size:
    """`find_best_resize`: the area scaled to `side` squared, then each side to the nearest multiple of `unit`."""
    if enlarge or width * height > side * side:
        ratio = width / height
        height = int(side / sqrt(ratio))
        width = int(height * ratio)
    return Size(_nearest_multiple(width, unit), _nearest_multiple(height, unit))


def _nearest_multiple(length: float, unit: int) -> int:
    """The nearest multiple, halves to even, at least one unit."""
    return max(round(length / unit) * unit, unit)


def sliced(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    """The raster that the slices are cut from; without slices, the overview."""
    if cut.columns * cut.rows == 1:
        return cut.canvas
    one = slice_of(size, (cut.columns, cut.rows), shape_of(checkpoint).side, checkpoint.patch)
    return Size(one.width * cut.columns, one.height * cut.rows)


def by_area(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    """The sizes of one, two, three ... slices' area."""
    tiles = shape_of(checkpoint)
    return [shrunk_to_area(size, tiles.side * tiles.side * count) for count in range(1, tiles.most + 1)]


MINICPMV: Final = TiledFamily("minicpmv", "mm_processor_kwargs.max_slice_nums", _cut, sliced, by_area, numbered=True)
