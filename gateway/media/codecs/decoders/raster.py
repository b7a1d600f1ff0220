"""Decoded pixels on their way to the resizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Undecodable
from gateway.types import Size

Samples: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Raster:
    """``samples`` is (height, width, bands) with 1 band (grey), 3 (RGB) or 4 (RGB and a fourth byte).

    The fourth byte is transparency only where ``alpha`` is set, otherwise padding. ``grey`` tells that all colour bands
    are equal, however many there are.
    """

    samples: Samples
    alpha: bool = False
    grey: bool = False

    @property
    def size(self) -> Size:
        return Size(self.samples.shape[1], self.samples.shape[0])


def raster_from(samples: NDArray[np.uint8] | NDArray[np.uint16], expected: Size) -> Raster:
    """Bring what a decoder delivered (1 to 4 bands, 8 or 16 bits) into a Raster of the expected size.

    16-bit samples keep their high byte, as libvips does and as Pillow does with colour. Raises Undecodable when the
    size is not the header's.
    """
    deep = samples if samples.ndim == 3 else samples[:, :, None]
    if deep.shape[:2] != (expected.height, expected.width):
        raise Undecodable("The image's pixels do not have the size its header states.")
    bytes_ = _to_8_bit(deep)
    bands = bytes_.shape[2]
    if bands == 2:
        return Raster(_grey_alpha_to_rgba(bytes_), alpha=True, grey=True)
    if bands not in (1, 3, 4):
        bytes_ = np.ascontiguousarray(bytes_[:, :, :3])
    return Raster(bytes_, alpha=bands == 4, grey=bands == 1)


def _to_8_bit(samples: NDArray[np.uint8] | NDArray[np.uint16]) -> Samples:
    if samples.dtype == np.uint16:
        return np.right_shift(samples, 8).astype(np.uint8)
    return np.ascontiguousarray(samples, dtype=np.uint8)


def _grey_alpha_to_rgba(samples: Samples) -> Samples:
    wide = np.empty((*samples.shape[:2], 4), np.uint8)
    wide[:, :, :3] = samples[:, :, :1]
    wide[:, :, 3] = samples[:, :, 1]
    return wide
