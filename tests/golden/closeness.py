"""How near two pictures are: PSNR of all samples, SSIM of the luma. Own arithmetic on numpy.

SSIM: Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to structural similarity",
IEEE Transactions on Image Processing 13 (2004): Gaussian window of 11 x 11 with deviation 1.5, K1 = 0.01, K2 = 0.03,
L = 255, the mean over all places where the window fits. Luma by ITU-R BT.601.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Plane = NDArray[np.float64]
# Of equal pictures; the next nearest pair of this size is far below.
EQUAL_DB = 120.0
_WINDOW, _DEVIATION = 11, 1.5
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def psnr_db(one: Pixels, other: Pixels) -> float:
    """Decibels; ``EQUAL_DB`` where nothing differs."""
    error = float(np.mean((one.astype(np.float64) - other.astype(np.float64)) ** 2))
    return EQUAL_DB if error == 0 else float(10 * np.log10(255**2 / error))


def ssim(one: Pixels, other: Pixels) -> float:
    """1 where equal; both at least 11 pixels a side."""
    x, y = luma(one), luma(other)
    mean_x, mean_y = _blurred(x), _blurred(y)
    variance_x = _blurred(x * x) - mean_x**2
    variance_y = _blurred(y * y) - mean_y**2
    covariance = _blurred(x * y) - mean_x * mean_y
    likeness = (2 * mean_x * mean_y + _C1) * (2 * covariance + _C2)
    return float(np.mean(likeness / ((mean_x**2 + mean_y**2 + _C1) * (variance_x + variance_y + _C2))))


def luma(pixels: Pixels) -> Plane:
    """Grey or RGB to luma, 0 to 255."""
    if pixels.ndim == 2:
        return pixels.astype(np.float64)
    weighted: Plane = pixels[:, :, :3].astype(np.float64) @ np.array([0.299, 0.587, 0.114])
    return weighted


def _blurred(plane: Plane) -> Plane:
    places = np.arange(_WINDOW) - _WINDOW // 2
    weights = np.exp(-(places**2) / (2 * _DEVIATION**2))
    weights /= weights.sum()
    across: Plane = sliding_window_view(plane, _WINDOW, axis=1) @ weights
    blurred: Plane = sliding_window_view(across, _WINDOW, axis=0) @ weights
    return blurred
