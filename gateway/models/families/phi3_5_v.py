"""Phi-3.5-vision: every image is scaled to fill `num_crops` tiles of 336 as well as its aspect allows, up or down.

The width (of a portrait image, the height) is as many tiles as fit, the other side follows and is padded to whole
tiles. 144 tokens a tile and for the overview, one learnt separator a row of 12, one between; all count as image tokens.
The default of `num_crops` is 4; the model's card recommends 16 for single images. Checked against the checkpoint's own
`processing_phi3_v.py`, which vLLM 0.32.0 runs too. A strip of which less than a pixel would be left is refused.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of, unshrinkable
from gateway.models.tiling import refuse_strip
from gateway.types import Size

_ROWS_PER_TILE: Final = 12


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    fitted = _scaled(size, tiles.side, tiles.most)
    columns, rows = -(-fitted.width // tiles.side), -(-fitted.height // tiles.side)
    count = columns * rows + 1
    patches = count * ((tiles.side // checkpoint.patch) ** 2 + 1)
    tokens = tiles.tokens * count + 1 + _ROWS_PER_TILE * (rows + 1)
    return Cut(tokens, 0, columns, rows, Size(columns * tiles.side, rows * tiles.side), patches)


def _scaled(size: Size, side: int, most: int) -> Size:
    """The image before padding; portraits are handled lying down."""
    long, short = max(size.width, size.height), min(size.width, size.height)
    ratio = long / short
    length = _tiles_along(ratio, most) * side
    across = int(length / ratio)
    if across < 1:
        refuse_strip(size)
    return Size(length, across) if size.width >= size.height else Size(across, length)


@lru_cache(maxsize=4096)
def _tiles_along(ratio: float, most: int) -> int:
    """The largest number of tiles along the long side whose grid has at most `most` tiles."""
    along = 1
    while along * ceil(along / ratio) <= most:
        along += 1
    return along - 1


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    tiles = shape_of(checkpoint)
    return _scaled(size, tiles.side, tiles.most)


PHI3_5_V: Final = TiledFamily("phi3_5_v", "mm_processor_kwargs.num_crops", _cut, _fitted, unshrinkable)
