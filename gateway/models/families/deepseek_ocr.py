"""DeepSeek-OCR and DeepSeek-OCR-2: an overview of 1024, and 2 to 6 tiles where a side is longer than one tile.

Tiles are 640 (OCR) or 768 (OCR-2) pixels, stretched to the grid nearest in aspect; patches of 16 are merged four by
four. OCR's rows end in a separator, OCR-2's do not; one more token follows the overview. All count as image tokens.
With one tile at most (`most` = 1, the "Base" mode) the overview is all. Checked against vLLM 0.32.0
(`DeepseekOCRProcessor`, strategies v1 and v2), which fixes these sizes: the processor's own arguments do not reach its
placeholder count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, covering, shape_of
from gateway.models.tiling import ONE_TILE, Grid, TileShape, nearest_grid, shrunk_to
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint, *, separators: int) -> Cut:
    tiles = shape_of(checkpoint)
    columns, rows = _grid(size, tiles)
    tokens, patches = _block(tiles.view_side, 1, 1, checkpoint, separators)
    if columns * rows == 1:
        return Cut(tokens + 1, 0, 1, 1, Size(tiles.view_side, tiles.view_side), patches)
    more, more_patches = _block(tiles.side, columns, rows, checkpoint, separators)
    canvas = Size(columns * tiles.side, rows * tiles.side)
    return Cut(tokens + 1 + more, 0, columns, rows, canvas, patches + more_patches)


def _block(side: int, columns: int, rows: int, checkpoint: Checkpoint, separators: int) -> tuple[int, int]:
    """Tokens and patches of a grid of tiles."""
    patches = side // checkpoint.patch
    cells = -(-patches // checkpoint.merge)
    return rows * cells * (columns * cells + separators), columns * rows * patches * patches


def _grid(size: Size, tiles: TileShape) -> Grid:
    if tiles.most == 1 or (size.width <= tiles.side and size.height <= tiles.side):
        return ONE_TILE
    return nearest_grid(size, tiles.side, tiles.most, least=tiles.least)


def _shrunk(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    """The largest size that is not cut."""
    side = shape_of(checkpoint).side
    return [one for one in shrunk_to(size, [side]) if max(one.width, one.height) <= side]


_KNOB: Final = "none: the engine fixes the sizes"
DEEPSEEK_OCR: Final = TiledFamily("deepseek_ocr", _KNOB, partial(_cut, separators=1), covering, _shrunk)
DEEPSEEK_OCR2: Final = TiledFamily("deepseek_ocr2", _KNOB, partial(_cut, separators=0), covering, _shrunk)
