"""JPEG files of a video's frames, by libjpeg-turbo. Runs in image workers only.

Full chroma: a frame is mostly delivered smaller than it was recorded, and then its halved chroma is not half any more.
"""

from __future__ import annotations

import numpy as np
import simplejpeg


def encode_frame(pixels: object, quality: int) -> bytes:
    """Encode RGB samples (rows x columns x 3, 8 bit). Same samples and quality, same bytes."""
    rows = np.ascontiguousarray(pixels, dtype=np.uint8)
    return bytes(simplejpeg.encode_jpeg(rows, quality=quality, colorspace="RGB", colorsubsampling="444"))
