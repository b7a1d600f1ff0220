"""How much detail an image has and whether it is text: measured on its brightness, octave by octave, in whole numbers.

Decided here: the measure (`types.Detail` says what its numbers mean). Not decided here: what follows from it
(``models.detail``). Each octave is a step of the S transform with linear prediction (Said and Pearlman 1996): of every
two by two pixels the mean goes on, and what the means beside it do not predict is what halving would lose. The picture
is cut into 32 x 32 tiles whose losses are averaged by their fourth powers, so that an empty sky does not outvote the
small print under it. A tile looks like text where many steep edges stand on even ground.

Measured from about a million pixels on, which JPEG delivers by scaled decoding. Only whole numbers and the decoders:
the same file measures the same on every machine with the same libraries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt, log10
from typing import TypeAlias, cast

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from gateway.media.codecs.decoders import Raster, decode
from gateway.media.codecs.decoders.raster import Samples
from gateway.media.codecs.scaling import measured_shrink, shrunk
from gateway.types import ColourModel, Detail, ImageFormat, Probe, Size

_TILES = 32
# Means of two by two pixels, summed over four, so a step of S grey levels from one pair to the next is 2 S.
_STEEP, _EVEN = 80, 16
# Shares of a tile, in percent.
_STEEP_PERCENT, _EVEN_PERCENT = 8, 35
# In the first octave letters are told apart by their losses already, and looking for them would cost most.
_TEXT_OCTAVES = (1, 2)

_NOTHING_LOST_DB = 99.0

_Numbers: TypeAlias = NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class _AsStored:
    """How the measure has a file decoded (``decoders.Wanted``)."""

    target: Size
    frame: int = 0
    to_srgb: bool = False
    salvage: bool = False


def measure(data: bytes, probe: Probe, sizes: Sequence[Size]) -> tuple[Detail, tuple[float, ...]]:
    """Decode the first frame small and measure it, and the PSNR in dB of every upright size once brought back.

    Raises Undecodable, UnsupportedFormat, MemoryError.
    """
    grey = brightness(data, probe)
    turned = probe.orientation >= 5
    return detail_of(grey), tuple(_psnr_db(grey, size, turned=turned) for size in sizes)


def _psnr_db(grey: Samples, size: Size, *, turned: bool) -> float:
    """Of the picture shrunk and enlarged again, both bicubic; 99: nothing lost. For people, never a decision."""
    picture = Image.fromarray(grey)
    sides = (size.height, size.width) if turned else (size.width, size.height)
    small = (min(sides[0], picture.width), min(sides[1], picture.height))
    if small == picture.size:
        return _NOTHING_LOST_DB
    back = picture.resize(small, Image.Resampling.BICUBIC).resize(picture.size, Image.Resampling.BICUBIC)
    error = np.asarray(back).astype(np.float32) - grey
    mean = float(np.einsum("ij,ij->", error, error, dtype=np.float64)) / error.size
    return round(min(_NOTHING_LOST_DB, 10 * log10(255**2 / mean)), 1) if mean else _NOTHING_LOST_DB


def brightness(data: bytes, probe: Probe) -> Samples:
    """The picture's brightness (ITU-R BT.601), as stored, shrunk to about a million pixels; transparency on white."""
    shrink = measured_shrink(probe.raster)
    if probe.format is ImageFormat.JPEG and probe.colour is not ColourModel.CMYK:
        size = shrunk(probe.raster, shrink)
        try:
            grey = simplejpeg.decode_jpeg(
                data, "GRAY", min_height=size.height, min_width=size.width, min_factor=1.0, strict=True
            )
        except ValueError:
            pass  # the ordinary decoder knows what is harmless, and names what is not
        else:
            return cast("Samples", grey[:, :, 0])
    raster = decode(data, probe, shrunk(probe.raster, shrink), _AsStored(probe.upright))
    image = _grey(raster)
    left = max(1, min(raster.size.width * shrink // probe.raster.width, shrink))
    return np.asarray(image.reduce(left) if left > 1 else image)


def _grey(raster: Raster) -> Image.Image:
    samples = raster.samples
    size = (raster.size.width, raster.size.height)
    mode = {1: "L", 3: "RGB", 4: "RGBA" if raster.alpha else "RGBX"}[samples.shape[2]]
    image = Image.frombuffer(mode, size, samples, "raw", mode, 0, 1)
    if mode == "RGBX":
        image = Image.frombuffer("RGB", size, samples, "raw", "RGBX", 0, 1)
    if not raster.alpha:
        return image.convert("L")
    ground = Image.new("L", size, 255)
    ground.paste(image.convert("L"), (0, 0), image.getchannel("A"))
    return ground


def detail_of(grey: Samples) -> Detail:
    """Measure brightness samples (height, width). Too narrow pictures have no losses."""
    pixels = grey.shape[0] * grey.shape[1]
    losses: list[int] = []
    text_tiles = 0
    while min(grey.shape) >= 2 * _TILES:
        octave = _halved(grey, sees_text=len(losses) in _TEXT_OCTAVES)
        losses.append(_power_mean(octave.losses))
        text_tiles = max(text_tiles, octave.text_tiles)
        grey = octave.means
    return Detail(pixels, tuple(losses), text_tiles * 1000 // (_TILES * _TILES))


def _power_mean(losses: NDArray[np.int64]) -> int:
    """The fourth root of the mean fourth power: three tiles of small print in a thousand even ones still show."""
    fourth = sum(loss**4 for loss in losses.ravel().tolist()) // losses.size
    return isqrt(isqrt(fourth))


@dataclass(frozen=True, slots=True)
class _Octave:
    means: Samples
    losses: NDArray[np.int64]
    text_tiles: int


def _halved(grey: Samples, *, sees_text: bool) -> _Octave:
    """One octave, a row of tiles at a time: what is worked on stays in the processor's cache."""
    height, width = grey.shape[0] // 2, grey.shape[1] // 2
    rows = [height * tile // _TILES for tile in range(_TILES + 1)]
    columns = np.array([width * tile // _TILES for tile in range(_TILES)])
    widths = np.diff(columns, append=width)
    means = np.empty((height, width), np.uint8)
    losses = np.empty((_TILES, _TILES), np.int64)
    text_tiles = 0
    for tile, (top, bottom) in enumerate(pairwise(rows)):
        sums, across, down, diagonal = _differences(grey[2 * top : 2 * bottom, : 2 * width])
        means[top:bottom] = (sums + 2) >> 2
        counts = (bottom - top) * widths
        text_tiles += _text_tiles(across, down, columns, counts) if sees_text else 0
        across[:, 1:-1] -= (sums[:, 2:] - sums[:, :-2]) >> 3
        down[1:-1] -= (sums[2:] - sums[:-2]) >> 3
        squares = _squares(across) + _squares(down) + _squares(diagonal)
        # A sixteenth of the squares is the mean squared error of each pixel; in 1/256 that is sixteen times them.
        losses[tile] = np.add.reduceat(squares, columns) * 16 // counts
    return _Octave(means, losses, text_tiles)


def _differences(grey: Samples) -> tuple[_Numbers, _Numbers, _Numbers, _Numbers]:
    """Of every two by two pixels: their sum, and twice the coefficients across, down and diagonal."""
    a, b = grey[0::2, 0::2].astype(np.int16), grey[0::2, 1::2].astype(np.int16)
    c, d = grey[1::2, 0::2].astype(np.int16), grey[1::2, 1::2].astype(np.int16)
    upper, lower = a + b, c + d
    b -= a
    d -= c
    return upper + lower, b + d, lower - upper, d - b


def _squares(part: _Numbers) -> NDArray[np.int64]:
    """Each column's sum of squares. Floating point is exact here: whole numbers, far below 2^53."""
    exact = part.astype(np.float64)
    squares: NDArray[np.int64] = np.einsum("ij,ij->j", exact, exact).astype(np.int64)
    return squares


def _text_tiles(across: _Numbers, down: _Numbers, columns: NDArray[np.int_], counts: NDArray[np.int_]) -> int:
    steepest = np.maximum(np.abs(across), np.abs(down))
    steep = np.add.reduceat(np.add.reduce(steepest >= _STEEP, axis=0, dtype=np.int64), columns)
    even = np.add.reduceat(np.add.reduce(steepest <= _EVEN, axis=0, dtype=np.int64), columns)
    return int(np.count_nonzero((100 * steep >= _STEEP_PERCENT * counts) & (100 * even >= _EVEN_PERCENT * counts)))
