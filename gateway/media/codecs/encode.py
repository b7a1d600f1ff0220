"""Chooses JPEG or PNG and encodes. JPEG 4:4:4 by PIL's encoder, PNG by our own writer; no metadata in either.

What came lossy (JPEG, lossy WebP) leaves as JPEG. What came lossless leaves as PNG, so that text stays sharp and a
change that keeps all pixels stays exact, unless it was resized and is a photograph, which PNG would blow up.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from PIL import Image

from gateway.media.codecs.png_writer import survey, write_png
from gateway.types import ImageFormat, OutputFormat, Size

# Share of raw bytes that deflate leaves of a sample, measured at 1.3 MP: screens, charts and logos 0.01 to 0.27,
# photographs 0.32 to 0.75. Grey scans with paper noise come out at 0.5 to 0.65 and stay PNG: text is what they are for.
_PHOTO_RATIO_RGB = 0.30
_PHOTO_RATIO_GREY = 0.70


@dataclass(frozen=True, slots=True)
class Wish:
    """How to encode: the plan's output format and quality, and what is known of the source."""

    output: OutputFormat
    jpeg_quality: int
    lossy_source: bool
    keeps_pixels: bool


def encode(image: Image.Image, wish: Wish) -> tuple[bytes, ImageFormat]:
    """Encode an image of mode L, RGB or RGBX."""
    match wish.output:
        case OutputFormat.JPEG:
            return _jpeg(image, wish.jpeg_quality)
        case OutputFormat.PNG:
            return _png(image, photo_as_jpeg=None)
        case OutputFormat.AUTO:
            if wish.lossy_source:
                return _jpeg(image, wish.jpeg_quality)
            return _png(image, photo_as_jpeg=None if wish.keeps_pixels else wish.jpeg_quality)
        case _:
            assert_never(wish.output)


def _jpeg(image: Image.Image, quality: int) -> tuple[bytes, ImageFormat]:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=0)
    return buffer.getvalue(), ImageFormat.JPEG


def _png(image: Image.Image, photo_as_jpeg: int | None) -> tuple[bytes, ImageFormat]:
    """PNG, or JPEG of the given quality when the picture turns out to be a photograph."""
    channels = 1 if image.mode == "L" else 3
    raw = image.tobytes("raw", "L" if channels == 1 else "RGB")
    rows = np.frombuffer(raw, np.uint8).reshape(image.height, image.width * channels)
    found = survey(rows, channels)
    if photo_as_jpeg is not None and found.ratio > (_PHOTO_RATIO_GREY if channels == 1 else _PHOTO_RATIO_RGB):
        return _jpeg(image, photo_as_jpeg)
    return write_png(rows, Size(image.width, image.height), channels, found.filter_type), ImageFormat.PNG
