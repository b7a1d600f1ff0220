"""Gemma 4: every image is scaled, up or down, until it fills a budget of tokens; one token is 48 x 48 pixels.

Checked against transformers 5.19.0 (`Gemma4ImageProcessor`), with which vLLM 0.32.0's own count agrees. The budget is
70, 140, 280 (the default), 560 or 1,120 tokens; a checkpoint's `max_pixels` is that as an area. Both sides are rounded
down to the grid; a side of which nothing would be left becomes one cell, and the other as many as the aspect or the
budget has. So the price depends on the aspect alone, no size is cheaper, and the processor's own result is often scaled
up again by a row or a column. Then the image is delivered at the size before rounding, which is counted alike.
"""

from __future__ import annotations

from math import floor, sqrt
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, unshrinkable
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    """The canvas is the resized image: columns and rows are those of its tokens."""
    width, height, merge = size.width, size.height, checkpoint.merge
    unit = checkpoint.patch * merge
    scale = sqrt(checkpoint.max_pixels / (height * width))
    rows, columns = floor(scale * height / unit), floor(scale * width / unit)
    most = max(1, checkpoint.max_pixels // (unit * unit))
    if rows == 0:
        rows, columns = 1, max(1, min(floor(width / height), most))
    elif columns == 0:
        rows, columns = min(floor(height / width), most), 1
    tokens = rows * columns
    return Cut(tokens, 2, columns, rows, Size(columns * unit, rows * unit), tokens * merge * merge)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    """Where the image is larger than the budget, the result if it holds still, else the size before rounding."""
    if size.pixels <= checkpoint.max_pixels:
        return size
    if _cut(cut.canvas, checkpoint).canvas == cut.canvas:
        return cut.canvas
    scale = sqrt(checkpoint.max_pixels / size.pixels)
    return Size(max(1, floor(size.width * scale)), max(1, floor(size.height * scale)))


GEMMA4: Final = TiledFamily(
    name="gemma4", knob="mm_processor_kwargs.max_soft_tokens", cutter=_cut, fitter=_fitted, shrinker=unshrinkable
)
