"""Phi-4-multimodal: whole tiles of 448, at most 36, padding cut off, a separator a row, and an overview.

An image within 36 tiles gets as many as cover it, a larger one the grid nearest in aspect. A tile is 32 x 32 patches of
14, merged two by two; cells that are all padding are dropped. Overview 256 tokens and 16 row separators, one separator
between; all count as image tokens. Checked against transformers 5.19.0 (`Phi4MultimodalImageProcessor`).

An image that would be less than 10 pixels wide or high in its canvas is refused by the processor. vLLM 0.32.0 counts it
all the same before it runs the processor (`Phi4MMProcessingInfo`), which then fails.
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, by_tiles, shape_of
from gateway.models.tiling import TileEngine, nearest_grid, refuse_strip
from gateway.types import Size

_LEAST_PIXELS: Final = 10


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    side, patch = tiles.side, checkpoint.patch
    columns, rows = -(-size.width // side), -(-size.height // side)
    if columns * rows > tiles.most:
        columns, rows = nearest_grid(size, side, tiles.most)
    canvas = Size(columns * side, rows * side)
    fitted = _within(size, canvas)
    if tiles.engine is not TileEngine.VLLM_COUNT and min(fitted.width, fitted.height) < _LEAST_PIXELS:
        refuse_strip(size)
    across = -(-(canvas.width // patch - (canvas.width - fitted.width) // patch) // 2)
    down = -(-(canvas.height // patch - (canvas.height - fitted.height) // patch) // 2)
    view_rows = side // patch // 2
    tokens = tiles.tokens + view_rows + 1 + across * down + down
    return Cut(tokens, 0, columns, rows, canvas, (columns * rows + 1) * (side // patch) ** 2)


def _within(size: Size, canvas: Size) -> Size:
    """The image within its canvas, enlarged or shrunk, aspect kept, the free side rounded down."""
    across, down = canvas.width / size.width, canvas.height / size.height
    if across < down:
        return Size(canvas.width, int(size.height * across))
    return Size(int(size.width * down), canvas.height)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    return _within(size, cut.canvas)


PHI4_MM: Final = TiledFamily("phi4_mm", "mm_processor_kwargs.dynamic_hd", _cut, _fitted, by_tiles)
