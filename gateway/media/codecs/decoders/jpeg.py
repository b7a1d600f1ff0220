"""JPEG by simplejpeg (libjpeg-turbo). Strict: a cut file is an error, never a half-grey picture.

Shrink-on-load only by 1/2 and 1/4 and only while at least twice the target is left on both sides: there its error stays
below that of the output's own encoding in every kind of picture measured (46 dB and more); the odd eighths have no
SIMD and shift the picture. Four-colour files come out as RGB in the convention of browsers and Pillow: stored inverted.
"""

from __future__ import annotations

from typing import cast

import simplejpeg

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.raster import Raster, Samples
from gateway.types import ColourModel, Probe, Size

_SHRINKS = (4, 2)
_MARGIN = 2
# Cameras leave stray bytes before the end mark; every pixel has been decoded by then.
_HARMLESS = "before marker 0xd9"


def shrink_for(raster: Size, at_least: Size) -> int:
    """By how much (1, 2 or 4) the decoder may shrink so that twice ``at_least`` remains."""
    for shrink in _SHRINKS:
        if raster.width >= shrink * _MARGIN * at_least.width and raster.height >= shrink * _MARGIN * at_least.height:
            return shrink
    return 1


def decode_jpeg(data: bytes, probe: Probe, at_least: Size) -> Raster:
    """Decode to RGBX, perhaps shrunk. Raises Undecodable."""
    shrink = shrink_for(probe.raster, at_least)
    expected = Size(-(-probe.raster.width // shrink), -(-probe.raster.height // shrink))
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
