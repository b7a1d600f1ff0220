"""Llama 4: the tightest canvas of up to 16 tiles of 336, an overview where there is more than one, 144 tokens a tile.

A tile is 24 x 24 patches of 14, merged two by two. The image is enlarged at most to one tile and padded to the canvas.
Start, image and end token, a separator between tiles and one after each row are added. The processor compares scales
in 32-bit floats (torch), so ties are found in that precision. Checked against transformers 5.19.0 (`Llama4Processor`),
which vLLM 0.32.0 and SGLang 0.5.23 run too.
"""

from __future__ import annotations

from math import floor
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, by_tiles, shape_of
from gateway.models.tiling import scales, single_precision, tightest_grid
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    side, most = tiles.side, tiles.most
    across = single_precision(scales(size.width, side, most))
    down = single_precision(scales(size.height, side, most))
    columns, rows = tightest_grid(across, down, most)
    cells = columns * rows
    count, struct = (cells + 1, cells + 3) if cells > 1 else (1, 3)
    patches = (side // checkpoint.patch) ** 2
    return Cut(tiles.tokens * count, struct, columns, rows, Size(columns * side, rows * side), patches * count)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    """The image within the canvas, enlarged to no more than one tile (`get_max_res_without_distortion`)."""
    side = shape_of(checkpoint).side
    width = min(max(size.width, side), cut.canvas.width)
    height = min(max(size.height, side), cut.canvas.height)
    across, down = width / size.width, height / size.height
    if across < down:
        return Size(width, max(1, min(floor(size.height * across), height)))
    return Size(max(1, min(floor(size.width * down), width)), height)


LLAMA4: Final = TiledFamily("llama4", "mm_processor_kwargs.max_patches", _cut, _fitted, by_tiles)
