"""Molmo-7B-D: overlapping crops of 336, at most 12, in the tightest grid of 224-pixel windows, and an overview.

Neighbouring crops share 4 patches of 14 on each side, so a grid of t crops shows 224 t + 112 pixels. Patches are pooled
two by two: 144 tokens for the overview, (8 t + 4) a side for the crops. Start and end of both and a separator after
each row are added. The processor compares scales in 32-bit floats; an image of less than 112 pixels on a side gets
negative ones there, and one crop. Checked against the checkpoint's own `image_preprocessing_molmo.py` and vLLM 0.32.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import scales, shrunk_to, single_precision, tightest_grid
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    window = tiles.side - tiles.margin
    across = single_precision(scales(size.width - tiles.margin, window, tiles.most))
    down = single_precision(scales(size.height - tiles.margin, window, tiles.most))
    columns, rows = tightest_grid(across, down, tiles.most)
    cells, shared = window // checkpoint.factor, tiles.margin // checkpoint.factor
    wide, high = columns * cells + shared, rows * cells + shared
    view = tiles.side // checkpoint.factor
    canvas = Size(columns * window + tiles.margin, rows * window + tiles.margin)
    patches = (columns * rows + 1) * ((tiles.side // checkpoint.patch) ** 2 + 1)
    return Cut(tiles.tokens + wide * high, 4 + view + high, columns, rows, canvas, patches)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    """The image within the canvas before it is padded, the free side rounded down."""
    width, height = cut.canvas.width, cut.canvas.height
    if width * size.height < height * size.width:
        return Size(width, max(1, size.height * width // size.width))
    return Size(max(1, size.width * height // size.height), height)


def _shrunk(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    tiles = shape_of(checkpoint)
    window = tiles.side - tiles.margin
    return shrunk_to(size, [window * count + tiles.margin for count in range(1, tiles.most + 1)])


MOLMO: Final = TiledFamily("molmo", "none: max_crops of the model's configuration", _cut, _fitted, _shrunk)
