"""InternVL2, 2.5, 3 and 3.5: tiles of 448, the grid nearest in aspect, and an overview where there is more than one.

A tile is 32 x 32 patches of 14, merged two by two: 256 tokens. `<img>` and `</img>` stand around each image. Tiles are
cut from the image stretched to the grid's canvas, so the canvas itself comes through unchanged.

Engines differ. The model's own code, vLLM (`InternVLProcessor` 0.32.0) and transformers 5.19.0 take the larger of two
grids of the same aspect only while the image has half its pixels. SGLang 0.5.23 (its own `dynamic_preprocess`) takes
the one with the most tiles, and 448 px and at most 12 tiles whatever the configuration says: a square image of any size
is 9 tiles and an overview there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of, stretched
from gateway.models.tiling import Grid, TileEngine, TileShape, nearest_grid, nearest_largest_grid, stretched_grids
from gateway.types import Size

_SGLANG_SIDE: Final = 448
_SGLANG_MOST: Final = 12


def cut_nearest(size: Size, checkpoint: Checkpoint) -> Cut:
    """The cut of InternVL and its copies: `<img>`, the tiles, an overview, `</img>`."""
    tiles = shape_of(checkpoint)
    columns, rows = _grid(size, tiles, _most(tiles))
    count = columns * rows
    if count > 1:
        count += 1
    side = _side(tiles)
    patches = (side // checkpoint.patch) ** 2
    canvas = Size(columns * side, rows * side)
    return Cut(tiles.tokens * count, 2, columns, rows, canvas, patches * count)


def canvases(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    """What the engine would stretch the image to if it were started with fewer tiles."""
    tiles = shape_of(checkpoint)
    return stretched_grids(size, _side(tiles), lambda most: _grid(size, tiles, most), _most(tiles))


def _grid(size: Size, tiles: TileShape, most: int) -> Grid:
    if tiles.engine is TileEngine.SGLANG:
        return nearest_largest_grid(size, most)
    return nearest_grid(size, tiles.side, most, least=min(tiles.least, most))


def _side(tiles: TileShape) -> int:
    return _SGLANG_SIDE if tiles.engine is TileEngine.SGLANG else tiles.side


def _most(tiles: TileShape) -> int:
    return _SGLANG_MOST if tiles.engine is TileEngine.SGLANG else tiles.most


INTERNVL: Final = TiledFamily("internvl", "mm_processor_kwargs.max_dynamic_patch", cut_nearest, stretched, canvases)
