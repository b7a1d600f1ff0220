"""From a file's bytes to pixels, one library per format. Never PIL: its build here lacks later security fixes."""

from __future__ import annotations

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders.flat import decode_bmp, decode_gif, decode_still_webp
from gateway.media.codecs.decoders.jpeg import decode_jpeg
from gateway.media.codecs.decoders.png import decode_png
from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.decoders.vips import decode_first_page
from gateway.types import ImageFormat, Probe, Size

__all__ = ["Raster", "decode"]


def decode(data: bytes, probe: Probe, at_least: Size) -> Raster:
    """Decode the picture (of several: the first) as stored, not rotated.

    A decoder that can shrink while decoding may deliver fewer pixels than ``probe.raster``, never fewer than
    ``at_least`` on either side. Raises Undecodable, UnsupportedFormat.
    """
    if not probe.complete:
        raise Undecodable("The image's data ends too early.")
    match probe.format:
        case ImageFormat.JPEG:
            return decode_jpeg(data, probe, at_least)
        case ImageFormat.WEBP:
            return decode_first_page(data, probe) if probe.frames > 1 else decode_still_webp(data, probe)
        case ImageFormat.BMP:
            return decode_bmp(data, probe)
        case ImageFormat.GIF:
            return decode_gif(data, probe)
        case ImageFormat.PNG:
            return decode_png(data, probe)
        case ImageFormat.TIFF:
            return decode_first_page(data, probe)
        case _:
            raise UnsupportedFormat(f"Images in {probe.format.value.upper()} format are not accepted.")
