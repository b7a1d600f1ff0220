"""Gemma 3: 256 tokens for the whole image at 896 x 896 and, with pan-and-scan, as many for each crop of it.

Checked against transformers 5.19.0 (`Gemma3Processor`). Off by default; on where a checkpoint's `tiles.most` is above
one (the processor's `pan_and_scan_max_num_crops`, 4). From 1.2:1 on a longer image is then cut along its length, about
one crop per aspect and never below 256 pixels a side. Each view stands between two runs of newlines and two marks; the
sentence that the processor writes before the crops is text and not counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import scaled_to_height, scaled_to_width
from gateway.types import Size

_LEAST_CROP: Final = 256  # pan_and_scan_min_crop_size, pixels
_LEAST_RATIO: Final = 1.2  # pan_and_scan_min_ratio_to_activate
_VIEW_MARKS: Final = 4


def _crops(size: Size, most: int) -> int:
    """How many crops an image gets, 0 for none."""
    long, short = max(size.width, size.height), min(size.width, size.height)
    if most < 2 or long / short < _LEAST_RATIO:
        return 0
    crops = min(most, max(2, min(floor(long / _LEAST_CROP), floor(long / short + 0.5))))
    return 0 if min(ceil(long / crops), short) < _LEAST_CROP else crops


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    """The canvas is that of each view; all views are stretched to it."""
    shape = shape_of(checkpoint)
    crops = _crops(size, shape.most)
    views = crops + 1
    columns, rows = (max(1, crops), 1) if size.width >= size.height else (1, max(1, crops))
    patches = (shape.side // checkpoint.patch) ** 2
    return Cut(views * shape.tokens, views * _VIEW_MARKS, columns, rows, Size(shape.side, shape.side), views * patches)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:
    """The square; with pan-and-scan, which looks at the aspect, the least size whose crops are all as large."""
    side, most = shape_of(checkpoint).side, shape_of(checkpoint).most
    if most < 2:
        return cut.canvas
    if size.width * cut.rows >= size.height * cut.columns:
        fitted = scaled_to_height(size, cut.rows * side)
    else:
        fitted = scaled_to_width(size, cut.columns * side)
    return fitted if fitted.pixels < size.pixels else size


def _smaller(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    """The largest sizes with fewer crops, and with none: too short for one crop more, or too narrow for any."""
    wide = size.width >= size.height
    along, across = (scaled_to_width, scaled_to_height) if wide else (scaled_to_height, scaled_to_width)
    lengths = [crops * _LEAST_CROP - 1 for crops in range(shape_of(checkpoint).most, 2, -1)]
    return [*(along(size, length) for length in (*lengths, 2 * _LEAST_CROP - 2)), across(size, _LEAST_CROP - 1)]


GEMMA3: Final = TiledFamily(
    name="gemma3", knob="mm_processor_kwargs.do_pan_and_scan", cutter=_cut, fitter=_fitted, shrinker=_smaller
)
