"""Command A Vision: the tightest canvas of up to 12 tiles of 512, an overview, and 256 tokens a tile.

The image is stretched to the canvas that needs the least enlargement, or the least shrinking where none is large
enough. A start, an end and a line break after each tile and the overview are added. Checked against transformers 5.19.0
(`Cohere2VisionProcessor`), which vLLM 0.32.0 runs too.
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, by_tiles, shape_of, stretched
from gateway.models.tiling import scales, tightest_grid
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    side, most = tiles.side, tiles.most
    columns, rows = tightest_grid(scales(size.width, side, most), scales(size.height, side, most), most)
    count = columns * rows + (columns * rows > 1)
    patches = (side // checkpoint.patch) ** 2
    return Cut(tiles.tokens * count, 2 + count, columns, rows, Size(columns * side, rows * side), patches * count)


COMMAND_A_VISION: Final = TiledFamily("command_a_vision", "mm_processor_kwargs.max_patches", _cut, stretched, by_tiles)
