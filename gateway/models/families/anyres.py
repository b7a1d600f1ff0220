"""What LLaVA-NeXT and LLaVA-OneVision share: the cells of a canvas that hold image, and the rows they form.

Decided here: `_get_unpadded_features` of transformers 5.19.0. Not decided here: which canvas an image gets.
"""

from __future__ import annotations

from math import ceil

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut
from gateway.types import Size


def unpadded(size: Size, rows: int, columns: int) -> tuple[int, int]:
    """Of a canvas of `rows` x `columns` cells, those left when the padding on both sides is taken off.

    Padding is taken off in pairs, so an odd one leaves a row or column of it.
    """
    if size.width / size.height > columns / rows:
        kept = int(round(size.height * (columns / size.width), 7))
        return rows - (rows - kept) // 2 * 2, columns
    kept = int(round(size.width * (rows / size.height), 7))
    return rows, columns - (columns - kept) // 2 * 2


def fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    """The image within its canvas, aspect kept, the free side rounded up (`get_patch_output_size`)."""
    width, height = cut.canvas.width, cut.canvas.height
    across, down = width / size.width, height / size.height
    if across < down:
        return Size(width, min(ceil(size.height * across), height))
    return Size(min(ceil(size.width * down), width), height)
