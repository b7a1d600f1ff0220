"""LLaVA-OneVision: the best of 36 canvases of 384-tiles, padding cut off, a separator a row, and an overview.

A tile is 27 x 27 patches of 14. Where the canvas holds more than 1.1 times the side of nine tiles, both of its sides
are divided by that factor (`anyres_max_9`). Separators count as image tokens. Checked against transformers 5.19.0
(`LlavaOnevisionProcessor`), which vLLM 0.32.0 runs too.

Several images: transformers gives each one overview and a separator only where they come as a nested list; vLLM passes
a flat list, and every image keeps its tiles (`crowd_images` = 0).
"""

from __future__ import annotations

from math import sqrt
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.anyres import fitted, unpadded
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import effective_pin, shrunk_to
from gateway.types import Size

# The factor from which on the canvas is scaled down to the configured number of tiles.
_TOLERATED: Final = 1.1


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    cells = tiles.side // checkpoint.patch
    columns, rows = effective_pin(size, tiles.side, tiles.pins)
    down, across = unpadded(size, rows * cells, columns * cells)
    excess = sqrt(down * across / (tiles.most * cells**2))
    if excess > _TOLERATED:
        down, across = int(down // excess), int(across // excess)
    patches = (columns * rows + 1) * cells * cells
    canvas = Size(columns * tiles.side, rows * tiles.side)
    return Cut(tiles.tokens + down * across + down, 0, columns, rows, canvas, patches)


def _uncut(size: Size, checkpoint: Checkpoint) -> Cut:  # noqa: ARG001  # the contract's
    """One of several images of a nested list: the overview and a separator."""
    tiles = shape_of(checkpoint)
    cells = tiles.side // checkpoint.patch
    return Cut(tiles.tokens + 1, 0, 1, 1, Size(tiles.side, tiles.side), cells * cells)


def _shrunk(size: Size, checkpoint: Checkpoint) -> list[Size]:
    tiles = shape_of(checkpoint)
    longest = max(max(pin) for pin in tiles.pins)
    return shrunk_to(size, [tiles.side * count for count in range(1, longest + 1)])


LLAVA_ONEVISION: Final = TiledFamily(
    "llava_onevision",
    "none: image_grid_pinpoints of the model's configuration",
    _cut,
    fitted,
    _shrunk,
    crowd_cutter=_uncut,
)
