"""The embedded ICC profile of a whole file, wherever its format keeps it. For conversion, after a probe found one."""

from __future__ import annotations

from gateway.media.codecs.probe.heif import heif_profile
from gateway.media.codecs.probe.jpeg import jpeg_profile
from gateway.media.codecs.probe.jpeg2000 import jpeg2000_profile
from gateway.media.codecs.probe.png import png_profile
from gateway.media.codecs.probe.tiff import tiff_profile
from gateway.media.codecs.probe.webp import webp_profile
from gateway.types import ImageFormat


def embedded_profile(data: bytes, kind: ImageFormat, page: int = 0) -> bytes | None:
    """The profile as it stands in the file, of a document in one of its pages; ``None`` if there is none."""
    match kind:
        case ImageFormat.JPEG:
            return jpeg_profile(data)
        case ImageFormat.PNG:
            return png_profile(data)
        case ImageFormat.WEBP:
            return webp_profile(data)
        case ImageFormat.TIFF:
            return tiff_profile(data, page)
        case ImageFormat.AVIF | ImageFormat.HEIC:
            return heif_profile(data)
        case ImageFormat.JPEG2000:
            return jpeg2000_profile(data)
        case _:
            return None
