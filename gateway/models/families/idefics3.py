"""Idefics3 and SmolVLM: every image is scaled to one longest edge, up or down, and cut into a full set of tiles.

The short side is made even, both sides go up to whole tiles by stretching, and an overview follows where there is more
than one tile. So an image costs what its aspect says, whatever its size: 1x1 is 17 tiles, 2,873 tokens in Idefics3.
Two tokens stand before each tile, one break after each row, three around the overview. Checked against transformers
5.19.0 (`Idefics3Processor`, `SmolVLMProcessor`), which vLLM 0.32.0 and SGLang 0.5.23 run too.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of, stretched, unshrinkable
from gateway.types import Size

# The processor's absolute limit of a side, whatever edge is configured.
_LONGEST: Final = 4096


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    width, height = _to_edge(size.width, size.height, tiles.edge)
    columns, rows = _to_tiles(width, height, tiles.side)
    cells = columns * rows
    count, struct = (cells + 1, 2 * cells + rows + 3) if cells > 1 else (1, 3)
    patches = (tiles.side // checkpoint.patch) ** 2
    canvas = Size(columns * tiles.side, rows * tiles.side)
    return Cut(tiles.tokens * count, struct, columns, rows, canvas, patches * count)


def _to_edge(width: int, height: int, edge: int) -> tuple[int, int]:
    """The long side to the edge, the short one with it and up to an even number; then below the absolute limit."""
    aspect = width / height
    if width >= height:
        width, height = edge, int(edge / aspect)
        height = max(1, height + height % 2)
    else:
        width, height = int(edge * aspect), edge
        width = max(1, width + width % 2)
    if max(width, height) > _LONGEST:
        aspect = width / height
        if width >= height:
            return _LONGEST, max(1, int(_LONGEST / aspect))
        return max(1, int(_LONGEST * aspect)), _LONGEST
    return width, height


def _to_tiles(width: int, height: int, side: int) -> tuple[int, int]:
    """Whole tiles: the long side rounded up, the short one at the aspect of the scaled image, then rounded up."""
    aspect = width / height
    if width >= height:
        columns = ceil(width / side)
        return columns, max(1, ceil(int(columns * side / aspect) / side))
    rows = ceil(height / side)
    return max(1, ceil(int(rows * side * aspect) / side)), rows


IDEFICS3: Final = TiledFamily(
    "idefics3", "mm_processor_kwargs.size.longest_edge or do_image_splitting", _cut, stretched, unshrinkable
)
SMOLVLM: Final = TiledFamily(
    "smolvlm", "mm_processor_kwargs.size.longest_edge or do_image_splitting", _cut, stretched, unshrinkable
)
