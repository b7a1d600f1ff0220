"""PNG, still WebP and BMP by imagecodecs (libpng, libwebp, its own BMP reader)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import imagecodecs

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.raster import Raster, raster_from
from gateway.types import Probe


def decode_png(data: bytes, probe: Probe) -> Raster:
    """All depths, palettes, transparency keys and interlacing; of an APNG the default image. Raises Undecodable."""
    return raster_from(_call("PNG", imagecodecs.png_decode, data), probe.raster)


def decode_still_webp(data: bytes, probe: Probe) -> Raster:
    """Asks for four bands even of an opaque picture: the resizer takes RGBX without a copy. Raises Undecodable."""
    samples = _call("WebP", imagecodecs.webp_decode, data, hasalpha=True)
    return Raster(raster_from(samples, probe.raster).samples, alpha=probe.has_alpha)


def decode_bmp(data: bytes, probe: Probe) -> Raster:
    """Uncompressed BMP of any depth. Raises Undecodable."""
    return raster_from(_call("BMP", imagecodecs.bmp_decode, data, asrgb=True), probe.raster)


def _call(name: str, decode: Callable[..., Any], data: bytes, **options: object) -> Any:
    try:
        return decode(data, **options)
    except (RuntimeError, ValueError, IndexError, TypeError, OverflowError, NotImplementedError) as error:
        raise Undecodable(f"The {name}'s data is cut or damaged.", detail=str(error)) from error
