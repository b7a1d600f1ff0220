"""Ovis2: the fewest tiles of 448 that keep nine tenths of the image's pixels, at most 9, and an overview.

A part of the image keeps all its pixels if its long side is within 448, else those left when it is shrunk to that.
Where no grid keeps nine tenths, the one that keeps most is taken, of equals the one with fewest tiles. 256 tokens a
tile. Checked against transformers 5.19.0 (`Ovis2ImageProcessor`); the text around an image was not run, so it is not
counted.

The processor reads its own grids once as (rows, columns) and once the other way round, so the canvas that it stretches
the image to lies across the image's aspect. The count does not change; we deliver the image at its own aspect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of
from gateway.models.tiling import shrunk_to
from gateway.types import Size

_ENOUGH: Final = 0.9


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    tiles = shape_of(checkpoint)
    down, across = _covering(size.width, size.height, tiles.side, tiles.most)
    count = down * across + (down * across > 1)
    canvas = Size(down * tiles.side, across * tiles.side)
    return Cut(tiles.tokens * count, 0, down, across, canvas, (tiles.side // checkpoint.patch) ** 2 * count)


def _covering(width: int, height: int, side: int, most: int) -> tuple[int, int]:
    """(rows, columns) of the parts; grids with fewer tiles come first and win where as much is kept."""
    area, best, fallback = width * height, (1, 1), (1, 1)
    enough, enough_tiles, kept_most = _ENOUGH, 0, -1.0
    for tiles, rows, columns in _parts(most):
        if enough_tiles and tiles > enough_tiles:
            break
        kept = _kept(width, height, rows, columns, side) / area
        if kept > enough:
            enough, enough_tiles, best = kept, tiles, (rows, columns)
        if kept > kept_most:
            kept_most, fallback = kept, (rows, columns)
    return best if enough_tiles else fallback


@lru_cache(maxsize=64)
def _parts(most: int) -> tuple[tuple[int, int, int], ...]:
    found = [(rows * columns, rows, columns) for rows in range(1, most + 1) for columns in range(1, most // rows + 1)]
    return tuple(sorted(found))


def _kept(width: int, height: int, rows: int, columns: int, side: int) -> float:
    """Pixels kept by all parts; the last row and column are larger where the division leaves a rest.

    Summed part by part, as the processor does: the sum is compared with others, and its rounding shows.
    """
    wide, high = width // columns, height // rows
    last_wide, last_high = width - wide * (columns - 1), height - high * (rows - 1)
    if last_wide <= side and last_high <= side:
        return width * height
    last_row = [_part(wide, last_high, side)] * (columns - 1) + [_part(last_wide, last_high, side)]
    if rows == 1:
        return sum(last_row)
    row = [_part(wide, high, side)] * (columns - 1) + [_part(last_wide, high, side)]
    return sum(row * (rows - 1) + last_row)


def _part(width: int, height: int, side: int) -> float:
    long, short = (width, height) if width > height else (height, width)
    return side * (short / long * side) if long > side else long * short


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    """Large enough for all that the parts keep: each side as long as its tiles, at the image's own aspect."""
    width, height = cut.canvas.height, cut.canvas.width
    if width * size.height >= height * size.width:
        return Size(width, -(-size.height * width // size.width))
    return Size(-(-size.width * height // size.height), height)


def _shrunk(size: Size, checkpoint: Checkpoint) -> Sequence[Size]:
    """Sizes whose parts are as long as a tile, or longer by what may be lost: 448 / sqrt(0.9) = 472.2."""
    tiles = shape_of(checkpoint)
    unit = int(tiles.side / _ENOUGH**0.5)
    return shrunk_to(size, [length * count for count in range(1, tiles.most + 1) for length in (tiles.side, unit)])


OVIS2: Final = TiledFamily("ovis2", "mm_processor_kwargs.max_patches", _cut, _fitted, _shrunk)
