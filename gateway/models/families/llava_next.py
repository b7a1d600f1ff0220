"""LLaVA-NeXT: the best of five canvases of 336-tiles, padding cut off, one learnt separator a row, and an overview.

A tile is 24 x 24 patches of 14, nothing is merged. The separators stand on image positions, so they count as image
tokens. A small image is enlarged to the canvas with the least waste, so that 1x1 costs 1,176. Checked against
transformers 5.19.0 (`LlavaNextProcessor`), which vLLM 0.32.0 runs too.
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.anyres import fitted, unpadded
from gateway.models.families.tiled import Cut, TiledFamily, by_tiles, shape_of
from gateway.models.tiling import effective_pin
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    columns, rows = effective_pin(size, tiles.side, tiles.pins)
    cells = tiles.side // checkpoint.patch
    down, across = unpadded(size, rows * cells, columns * cells)
    patches = (columns * rows + 1) * (cells * cells + 1)
    canvas = Size(columns * tiles.side, rows * tiles.side)
    return Cut(tiles.tokens + down * across + down, 0, columns, rows, canvas, patches)


LLAVA_NEXT: Final = TiledFamily(
    "llava_next", "none: image_grid_pinpoints of the model's configuration", _cut, fitted, by_tiles
)
