"""JPEG by simplejpeg (libjpeg-turbo). Strict: a cut file is an error, never a half-grey picture.

It shrinks while it decodes as far as ``scaling`` allows. Four-colour files come out as RGB in the convention of
browsers and Pillow: stored inverted.
"""

from __future__ import annotations

from typing import cast

import simplejpeg

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.raster import Raster, Samples
from gateway.media.codecs.scaling import shrink_for, shrunk
from gateway.types import ColourModel, Probe, Size

# Cameras leave stray bytes before the end mark; every pixel has been decoded by then.
_HARMLESS = "before marker 0xd9"


def decode_jpeg(data: bytes, probe: Probe, at_least: Size) -> Raster:
    """Decode to RGBX, perhaps shrunk, never below ``at_least``. Raises Undecodable."""
    expected = shrunk(probe.raster, shrink_for(probe.raster, at_least))
    try:
        samples = _decode(data, expected, strict=True)
    except ValueError as error:
        if _HARMLESS not in str(error):
            raise Undecodable("The JPEG's data is cut or damaged.", detail=str(error)) from error
        samples = _decode(data, expected, strict=False)
    if samples.shape[:2] != (expected.height, expected.width):
        raise Undecodable("The JPEG's pixels do not have the size its header states.")
    return Raster(samples, grey=probe.colour is ColourModel.GREY)


def _decode(data: bytes, expected: Size, *, strict: bool) -> Samples:
    samples = simplejpeg.decode_jpeg(
        data, "RGBX", min_height=expected.height, min_width=expected.width, min_factor=1.0, strict=strict
    )
    return cast("Samples", samples)
