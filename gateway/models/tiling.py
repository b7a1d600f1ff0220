"""Cutting an image into tiles: the numbers of one tiling, and the rules by which processors choose a grid.

Decided here: which grid of columns x rows an image gets under each of the rules in use. Not decided here: which model
uses which rule and what a tile costs (the family files), and with which numbers (`checkpoints.toml`). Every rule keeps
the order and the precision of its processor's floating-point operations; sizes are pixels after orientation.

Order among grids of equally many tiles is not kept, because it cannot matter: where 1x1 is among the candidates, two
such grids are never both nearest in aspect, and never both the tightest canvas (one with fewer tiles is as tight).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import inf, isqrt, log
from typing import Final, NoReturn

from gateway.errors import AspectRatioExceeded
from gateway.types import Size


class TileEngine(StrEnum):
    """Whose rule counts, for the families in which engines differ."""

    PROCESSOR = "processor"  # the model's own image processor, which vLLM runs too
    VLLM_COUNT = "vllm_count"  # vLLM's count before it runs the processor, which may still refuse the image
    SGLANG = "sglang"


@dataclass(frozen=True, slots=True)
class TileShape:
    """How a checkpoint cuts images. Sides are pixels; 0 = the family has no such number.

    `tokens` are the embeddings of one tile, `view_side` and `view_tokens` those of the overview where it differs from
    a tile. `edge` is the side that every image is scaled to first, `margin` what a tile shares with its neighbours.
    `pins` are the canvases of a configured list, as (rows, columns) in its order. From `crowd_images` images in one
    request on, none of them is cut (0 = never).
    """

    side: int
    most: int
    tokens: int
    least: int = 1
    view_side: int = 0
    view_tokens: int = 0
    edge: int = 0
    margin: int = 0
    crowd_images: int = 0
    pins: tuple[tuple[int, int], ...] = ()
    engine: TileEngine = TileEngine.PROCESSOR


# Grids are (columns, rows) throughout.
Grid = tuple[int, int]
ONE_TILE: Final[Grid] = (1, 1)


@lru_cache(maxsize=256)
def _grids(least: int, most: int) -> tuple[tuple[float, int, int], ...]:
    """All grids of `least` to `most` tiles, fewest tiles first, with their aspect."""
    found = [(c, r) for c in range(1, most + 1) for r in range(1, most // c + 1) if c * r >= least]
    return tuple((c / r, c, r) for c, r in sorted(found, key=lambda grid: grid[0] * grid[1]))


def nearest_grid(size: Size, side: int, most: int, *, least: int = 1) -> Grid:
    """The grid nearest in aspect; of equals the larger while the image has half the grid's pixels.

    InternVL's `find_closest_aspect_ratio` (vLLM 0.32.0), copied by many models.
    """
    aspect, area, unit = size.width / size.height, size.width * size.height, 0.5 * side * side
    nearest, columns, rows = inf, 1, 1
    for ratio, across, down in _grids(least, most):
        distance = abs(aspect - ratio)
        if distance < nearest:
            nearest, columns, rows = distance, across, down
        elif distance == nearest and area > unit * across * down:
            columns, rows = across, down
    return columns, rows


def nearest_largest_grid(size: Size, most: int) -> Grid:
    """The grid nearest in aspect; of equals the one with the most tiles (SGLang 0.5.23, InternVL)."""
    aspect = size.width / size.height
    nearest, columns, rows = inf, 1, 1
    for ratio, across, down in _grids(1, most):
        distance = abs(aspect - ratio)
        if distance < nearest or (distance == nearest and across * down > columns * rows):
            nearest, columns, rows = distance, across, down
    return columns, rows


def closest_by_area(size: Size, side: int, most: int) -> Grid:
    """The grid with the best product of aspect and covered area, the latter counting up to 0.6.

    `find_closest_aspect_ratio` of Llama-3.1-Nemotron-Nano-VL (vLLM 0.32.0).
    """
    aspect, area, tile = size.width / size.height, size.width * size.height, side * side
    best, columns, rows = -inf, 1, 1
    for ratio, across, down in _grids(1, most):
        covered, closeness = across * down * tile / area, min(ratio / aspect, aspect / ratio)
        factor = (min(0.6, covered)) * closeness
        if factor > best:
            best, columns, rows = factor, across, down
    return columns, rows


def tightest_grid(across: Sequence[float], down: Sequence[float], most: int) -> Grid:
    """The canvas that needs the least enlargement, else the least shrinking; of equals the one with fewest tiles.

    `across[i]` and `down[i]` are the scales at which the image is as wide or high as i + 1 tiles.
    """
    up, down_to, grown, shrunk = inf, -inf, ONE_TILE, ONE_TILE
    for columns in range(1, most + 1):
        width_scale = across[columns - 1]
        for rows in range(1, most // columns + 1):
            scale = down[rows - 1]
            scale = min(scale, width_scale)
            if scale >= 1:
                if scale < up or (scale == up and columns * rows < grown[0] * grown[1]):
                    up, grown = scale, (columns, rows)
            elif scale > down_to or (scale == down_to and columns * rows < shrunk[0] * shrunk[1]):
                down_to, shrunk = scale, (columns, rows)
    return shrunk if up == inf else grown


def scales(length: int, side: int, most: int) -> list[float]:
    """The scales at which `length` pixels are 1 ... `most` tiles long; endless for a length of 0, as in numpy."""
    if length == 0:
        return [inf] * most
    return [side * tiles / length for tiles in range(1, most + 1)]


def single_precision(values: Sequence[float]) -> list[float]:
    """The values as 32-bit floats have them: torch and some processors compare scales in that precision."""
    return array("f", values).tolist()


def effective_pin(size: Size, side: int, pins: Sequence[tuple[int, int]]) -> Grid:
    """The pin whose canvas keeps the most of the image's pixels, then wastes the fewest; the first of equals.

    `select_best_resolution` (transformers 5.19.0; vLLM 0.32.0 for DeepSeek-VL2).
    """
    width, height = size.width, size.height
    area, kept, wasted, best = width * height, 0, inf, ONE_TILE
    for rows, columns in pins:
        canvas_width, canvas_height = columns * side, rows * side
        scale, other = canvas_width / width, canvas_height / height
        scale = min(scale, other)
        effective = int(width * scale) * int(height * scale)
        effective = min(effective, area)
        waste = canvas_width * canvas_height - effective
        if effective > kept or (effective == kept and waste < wasted):
            kept, wasted, best = effective, waste, (columns, rows)
    return best


def split_by_area(size: Size, side: int, most: int) -> Grid | None:
    """MiniCPM-V's slices: about one per `side` x `side` pixels, split so that they are as square as can be.

    One slice fewer and one more are tried too; of equals the split with fewer columns. `None` = not cut.
    """
    width, height = size.width, size.height
    wanted = min(-(-width * height // (side * side)), most)
    if wanted <= 1:
        return None
    aspect = log(width / height)
    nearest, best = inf, ONE_TILE
    for slices in (wanted - 1, wanted, wanted + 1):
        if slices == 1 or slices > most:
            continue
        for error_at, columns, rows in _splits(slices):
            error = abs(aspect - error_at)
            if error < nearest:
                nearest, best = error, (columns, rows)
    return best


@lru_cache(maxsize=256)
def _splits(slices: int) -> tuple[tuple[float, int, int], ...]:
    divisors = [columns for columns in range(1, slices + 1) if slices % columns == 0]
    return tuple((log(columns / (slices // columns)), columns, slices // columns) for columns in divisors)


def refuse_strip(size: Size) -> NoReturn:
    """Raise `AspectRatioExceeded` for a shape of which the processor would leave nothing of one side."""
    long, short = max(size.width, size.height), min(size.width, size.height)
    raise AspectRatioExceeded(
        f"The image is too long for its width ({size}, {long / short:.1f}:1); the model's processor refuses it."
    )


# --- shrinking: sizes at which a count may change --------------------------------------------------------------------


def scaled_to_width(size: Size, width: int) -> Size:
    """`size` at this width, aspect kept, the height rounded down but at least one pixel."""
    return Size(width, max(1, size.height * width // size.width))


def scaled_to_height(size: Size, height: int) -> Size:
    """`size` at this height, aspect kept, the width rounded down but at least one pixel."""
    return Size(max(1, size.width * height // size.height), height)


def shrunk_to(size: Size, lengths: Sequence[int]) -> list[Size]:
    """`size` shrunk until one side is one of these lengths."""
    widths = [scaled_to_width(size, length) for length in lengths if length < size.width]
    return widths + [scaled_to_height(size, length) for length in lengths if length < size.height]


def shrunk_to_area(size: Size, pixels: int) -> Size:
    """`size` shrunk, aspect kept, to at most this many pixels; at least one pixel a side."""
    if size.pixels <= pixels:
        return size
    width = min(pixels, max(1, isqrt(pixels * size.width // size.height)))
    return Size(width, max(1, min(pixels // width, size.height * width // size.width)))


def stretched_grids(size: Size, side: int, choose: Callable[[int], Grid], most: int) -> list[Size]:
    """The canvases that the rule would choose under each smaller limit of tiles, none with more pixels than `size`."""
    found = dict.fromkeys(choose(limit) for limit in range(1, most + 1))
    units = [(columns, rows, min(side, isqrt(size.pixels // (columns * rows)))) for columns, rows in found]
    return [Size(columns * unit, rows * unit) for columns, rows, unit in units if unit > 0]
