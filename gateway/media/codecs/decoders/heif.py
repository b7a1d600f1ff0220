"""AVIF by imagecodecs (libavif, three times as fast as libheif), animated AVIF by libvips, HEIC by pillow-heif.

imagecodecs 2026.3.6 writes past its buffer when one frame of several is asked for, so no file with a track ever
reaches it: of those libvips takes the primary picture. pillow-heif is an extra (its wheel carries x265, which is GPL);
where it is missing, HEIC is refused by name. What it decodes comes cropped and upright.
"""

from __future__ import annotations

from typing import Any

import imagecodecs
import numpy as np

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.decoders.calls import call
from gateway.media.codecs.decoders.raster import Raster, raster_from
from gateway.media.codecs.decoders.vips import decode_page
from gateway.media.codecs.probe.heif import has_track
from gateway.types import Probe


def _load() -> Any:
    try:
        import pillow_heif  # noqa: PLC0415  an extra
    except ImportError:
        return None
    pillow_heif.options.DECODE_THREADS = 1
    pillow_heif.options.THUMBNAILS = False
    pillow_heif.options.DEPTH_IMAGES = False
    pillow_heif.options.AUX_IMAGES = False
    return pillow_heif


_pillow_heif = _load()


def has_heic() -> bool:
    """Whether HEIC can be decoded here."""
    return _pillow_heif is not None


def decode_avif(data: bytes, probe: Probe) -> Raster:
    """The primary picture as stored. Raises Undecodable."""
    if has_track(data):
        return decode_page(data, probe)
    samples = call("AVIF", imagecodecs.avif_decode, data, numthreads=1)
    if samples.dtype == np.uint16:
        samples = samples << (16 - probe.bits_per_sample)
    return raster_from(samples, probe.raster)


def decode_heic(data: bytes, probe: Probe) -> Raster:
    """The primary picture, cropped and upright. Raises Undecodable; UnsupportedFormat without its decoder."""
    if _pillow_heif is None:
        raise UnsupportedFormat(
            "HEIC images cannot be decoded here: the gateway was installed without its decoder (extra heif). "
            "Send JPEG, PNG, WebP or AVIF."
        )
    try:
        image = _pillow_heif.open_heif(data, convert_hdr_to_8bit=True)
        samples = np.asarray(image)
    except (ValueError, RuntimeError, OSError, SyntaxError, IndexError, EOFError) as error:
        raise Undecodable("The HEIC's data is cut or damaged.", detail=str(error)) from error
    return raster_from(samples, probe.raster)
