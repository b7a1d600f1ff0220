"""Llama-3.1-Nemotron-Nano-VL-8B: tiles of 512 by a rule of its own, an overview, and 256 tokens a tile.

The grid has the best product of two closenesses: its aspect to the image's, and its area to the image's, which counts
up to 0.6 only. Checked against vLLM 0.32.0 (`LlamaNemotronNanoVLImageProcessor`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of, stretched
from gateway.models.tiling import closest_by_area, stretched_grids
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    columns, rows = closest_by_area(size, tiles.side, tiles.most)
    count = columns * rows + (columns * rows > 1)
    patches = (tiles.side // checkpoint.patch) ** 2
    return Cut(tiles.tokens * count, 2, columns, rows, Size(columns * tiles.side, rows * tiles.side), patches * count)


def _canvases(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    tiles = shape_of(checkpoint)
    return stretched_grids(size, tiles.side, lambda most: closest_by_area(size, tiles.side, most), tiles.most)


NEMOTRON_NANO_VL: Final = TiledFamily(
    "nemotron_nano_vl", "mm_processor_kwargs.max_num_tiles", _cut, stretched, _canvases
)
