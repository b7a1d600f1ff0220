"""How far an image may shrink below its cap, from what it would lose: a pure decision over whole numbers.

Decided here: the size below which a picture would lose what it still has. It may shrink for as long as halving its
sides *once more* would keep the asked PSNR, against itself: what is delivered holds an octave whose loss would show, so
that shrinking what has been shrunk finds nothing to take. Not decided here: the measure (``media.codecs.detail``), what
an operator asks for (policy), how sizes fall on a grid (the family).
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from typing import Final

from gateway.types import Detail

# Pages and screens had 336 and more of thousand tiles of text, photographs that shrink at all 186 and fewer.
TEXT_PERMILLE: Final = 250
# A change smaller than a third is not worth another picture in every cache, and might be found again in its result.
_WORTHWHILE: Final = (2, 3)
# Between two octaves the loss is taken to grow as a power of the size, in steps of an eighth of an octave of the area.
_STEPS: Final = 16
# What a sixteenth of an octave of the sides, an eighth of the area's two, leaves of the pixels: 2^(-step/8) in 1/65536.
_LEFT: Final = (65536, 60097, 55109, 50535, 46341, 42495, 38968, 35734, 32768, 30048, 27554, 25268, 23170, 21247, 19484,
                17867, 16384)  # fmt: skip
# Losses are in 1/256 of a grey level squared.
_PEAK: Final = 255 * 255 * 256


@cache
def tolerated_loss(psnr_db: int) -> int:
    """The largest loss at which a picture keeps this PSNR, in 1/256 of a grey level squared."""
    return int(Decimal(_PEAK) / Decimal(10) ** (Decimal(psnr_db) / 10))


def adapted_pixels(detail: Detail, original_pixels: int, *, floor_pixels: int, halving_psnr_db: int) -> int | None:
    """The pixels that suffice for an image; ``None`` where it is to be left alone.

    Never fewer than ``floor_pixels``; fewer the lower ``halving_psnr_db``. Left alone: text, what is too narrow to be
    measured, and what would not lose at least a third of its pixels.
    """
    if detail.text_permille >= TEXT_PERMILLE or not detail.losses:
        return None
    halved = _smallest(detail, tolerated_loss(halving_psnr_db))
    pixels = max(4 * halved, floor_pixels)
    numerator, denominator = _WORTHWHILE
    return pixels if pixels * denominator <= original_pixels * numerator else None


def _smallest(detail: Detail, tolerated: int) -> int:
    """Pixels of the size down to which no halving loses more than ``tolerated``.

    The octave above the raster that was measured is taken to hold a quarter of what the first one below it does.
    """
    before, pixels = max(1, detail.losses[0] // 4), detail.pixels
    for loss in detail.losses:
        if loss > tolerated:
            return pixels * _LEFT[_steps(before, loss, tolerated)] >> 16
        before, pixels = max(1, loss), pixels // 4
    return pixels


def _steps(before: int, after: int, tolerated: int) -> int:
    """How many of the steps from one octave to the next may be gone, by exact comparison of powers."""
    limit = tolerated**_STEPS
    return max(
        (step for step in range(_STEPS) if before ** (_STEPS - step) * after**step <= limit),
        default=0,
    )
