"""LFM2-VL: small images as they are, 64 to 256 tokens of 32 x 32 pixels; large ones as 2 to 10 tiles and an overview.

Checked against transformers 5.19.0 (`Lfm2VlProcessor`, class defaults). An image counts as large from twice the pixels
of 256 tokens on, measured after rounding to the grid. Tiles are 512 pixels a side, 256 tokens each, and stretched; the
overview is resized from the image itself by the rule for small ones. That rule keeps one cell across a strip whatever
the cap, and the processor fails to stack an overview of more patches than a tile has, or small images of different
sizes above that: both are refused here. A mark starts and one ends the image; with tiles each has its own, and the
overview too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, sqrt
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.covering import largest_grid
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.family import Target
from gateway.models.geometry import check_caps
from gateway.models.tiling import nearest_grid, refuse_strip, scaled_to_height, scaled_to_width, shrunk_to_area
from gateway.types import ImageTokens, Size

_LARGE: Final = 2.0  # max_pixels_tolerance


def _resized(size: Size, checkpoint: Checkpoint) -> tuple[int, int]:
    """Columns and rows of a small image or an overview. Qwen's rule, but no side rounds to no cell."""
    width, height, factor = size.width, size.height, checkpoint.patch * checkpoint.merge
    columns, rows = max(1, round(width / factor)), max(1, round(height / factor))
    area = columns * rows * factor * factor
    if area > checkpoint.max_pixels:
        shrink = sqrt((height * width) / checkpoint.max_pixels)
        rows = max(1, floor(height / shrink / factor))
        columns = max(1, floor(width / shrink / factor))
    elif area < checkpoint.min_pixels:
        grow = sqrt(checkpoint.min_pixels / (height * width))
        rows, columns = ceil(height * grow / factor), ceil(width * grow / factor)
    return columns, rows


def _is_large(size: Size, checkpoint: Checkpoint) -> bool:
    """A side is taken for one patch here at least, not for one cell."""
    patch, factor = checkpoint.patch, checkpoint.factor
    height = max(patch, round(size.height / factor) * factor)
    width = max(patch, round(size.width / factor) * factor)
    return height * width > checkpoint.max_pixels * _LARGE


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    """The canvas is that of the tiles, or the resized image where there are none."""
    shape, factor, merge = shape_of(checkpoint), checkpoint.factor, checkpoint.merge
    columns, rows = _resized(size, checkpoint)
    view = columns * rows
    if not _is_large(size, checkpoint):
        return Cut(view, 2, 1, 1, Size(columns * factor, rows * factor), view * merge * merge)
    if view > shape.tokens:
        refuse_strip(size)
    across, down = nearest_grid(size, shape.side, shape.most, least=shape.least)
    tiles = across * down
    tokens = tiles * shape.tokens + view
    canvas = Size(across * shape.side, down * shape.side)
    return Cut(tokens, tiles + 3, across, down, canvas, tokens * merge * merge)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    """Without tiles the result; with tiles the aspect must stay: large enough for the canvas."""
    if cut.columns * cut.rows == 1:
        return cut.canvas if size.pixels > checkpoint.max_pixels else size
    if cut.canvas.width * size.height >= cut.canvas.height * size.width:
        return scaled_to_width(size, cut.canvas.width)
    return scaled_to_height(size, cut.canvas.height)


def _tiles_less(size: Size, checkpoint: Checkpoint) -> list[Size]:
    """The sizes from which on fewer tiles are as near in aspect; beyond the longest row of tiles there are none."""
    shape = shape_of(checkpoint)
    if max(size.width, size.height) > shape.most * min(size.width, size.height):
        return []
    found: dict[tuple[int, int], Size] = {}
    for tiles in range(shape.most, shape.least, -1):
        smaller = shrunk_to_area(size, tiles * shape.side**2 // 2)
        if smaller.pixels < size.pixels:
            found.setdefault(nearest_grid(smaller, shape.side, shape.most, least=shape.least), smaller)
    found.pop(nearest_grid(size, shape.side, shape.most, least=shape.least), None)
    return list(found.values())


def _grid(size: Size, cells: int, checkpoint: Checkpoint) -> Size:
    """The largest small image of this aspect in at most `cells` cells."""
    factor, long, short = checkpoint.factor, max(size.width, size.height), min(size.width, size.height)
    along, across = largest_grid(long, short, cells, cells)
    return Size(along * factor, across * factor) if size.width >= size.height else Size(across * factor, along * factor)


def _smaller(size: Size, checkpoint: Checkpoint, limit: int) -> Sequence[Size]:
    """Fewer tiles, or a small image: the largest within `limit` cells and no larger or costlier
    than `size`, and the smallest that the engine does not enlarge.
    """
    unit = checkpoint.factor**2
    least, most = -(-checkpoint.min_pixels // unit), checkpoint.max_pixels // unit
    grids = (_grid(size, cells, checkpoint) for cells in range(least, most + 1))
    smallest = next((grid for grid in grids if grid.pixels >= least * unit), None)
    found = _tiles_less(size, checkpoint)
    limit = min(limit, most, size.pixels // unit, _cut(size, checkpoint).tokens)
    if limit >= least:
        found.append(_grid(size, limit, checkpoint))
    return found if smallest is None else [*found, smallest]


@dataclass(frozen=True, slots=True)
class LfmFamily(TiledFamily):
    """Images of one request are stacked, which only works where all have as many patches as a tile, once padded."""

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        cuts = [self.cut(size, checkpoint) for size in sizes]
        most = shape_of(checkpoint).tokens
        stacked = {max(most, cut.tokens) if cut.columns * cut.rows == 1 else most for cut in cuts}
        if len(stacked) > 1:
            refuse_strip(max(sizes, key=lambda size: max(size.width, size.height) / min(size.width, size.height)))
        return tuple(self._price(cut, checkpoint) for cut in cuts)

    def plan(
        self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None = None, cap_tokens: int | None = None
    ) -> Target:
        """Small images come in too many sizes to try them all: the caps say which one to try."""
        check_caps(cap_pixels, cap_tokens)
        limits = [shape_of(checkpoint).tokens if cap_tokens is None else cap_tokens]
        limits += [] if cap_pixels is None else [cap_pixels // checkpoint.factor**2]
        family = replace(self, shrinker=partial(_smaller, limit=min(limits)))
        return TiledFamily.plan(family, size, checkpoint, cap_pixels=cap_pixels, cap_tokens=cap_tokens)


LFM2_VL: Final = LfmFamily(
    name="lfm2_vl",
    knob="mm_processor_kwargs.min_image_tokens",
    cutter=_cut,
    fitter=_fitted,
    shrinker=_tiles_less,
)
