"""Llama 3.2 Vision: the tightest canvas of up to 4 tiles of 560; 1,601 cross-attention embeddings a tile.

A tile is 40 x 40 patches of 14 and a class embedding, nothing is merged. The embeddings stand beside the prompt, not in
it: `<|image|>` is the one prompt token. They take KV in the cross-attention layers. The image is padded to the canvas,
never stretched, and enlarged at most to one tile. Checked against transformers 5.19.0 (`MllamaImageProcessor`).

Engines differ: vLLM serves these models up to 0.10.2 only; SGLang 0.5.23 books four tiles for every image, because it
counts the padded axis of its tensor.
"""

from __future__ import annotations

from math import floor
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, by_tiles, shape_of
from gateway.models.tiling import TileEngine, scales, tightest_grid
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    side, most = tiles.side, tiles.most
    columns, rows = tightest_grid(scales(size.width, side, most), scales(size.height, side, most), most)
    booked = most if tiles.engine is TileEngine.SGLANG else columns * rows
    canvas = Size(columns * side, rows * side)
    return Cut(tiles.tokens * booked, 1, columns, rows, canvas, tiles.tokens * columns * rows)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    """The image within the canvas, enlarged to no more than one tile (`get_image_size_fit_to_canvas`)."""
    side = shape_of(checkpoint).side
    width = min(max(size.width, side), cut.canvas.width)
    height = min(max(size.height, side), cut.canvas.height)
    across, down = width / size.width, height / size.height
    if across < down:
        return Size(width, min(floor(size.height * across) or 1, height))
    return Size(min(floor(size.width * down) or 1, width), height)


MLLAMA: Final = TiledFamily("mllama", "mm_processor_kwargs.max_image_tiles", _cut, _fitted, by_tiles, in_prompt=False)
