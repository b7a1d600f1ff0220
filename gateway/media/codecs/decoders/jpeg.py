"""JPEG by simplejpeg (libjpeg-turbo). Strict: a cut file is an error, no half-grey picture, unless that is asked for.

It shrinks while it decodes as far as ``scaling`` allows. Four-colour files come out as RGB in the convention of
browsers and Pillow: stored inverted. With a profile of inks they are decoded by imagecodecs instead, which hands over
the inks themselves.
"""

from __future__ import annotations

from typing import cast

import imagecodecs
import simplejpeg

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.calls import call
from gateway.media.codecs.decoders.profile import inks_to_srgb
from gateway.media.codecs.decoders.raster import Raster, Samples, raster_from
from gateway.media.codecs.scaling import shrink_for, shrunk
from gateway.types import ColourModel, Probe, Size

# Cameras leave stray bytes before the end mark; every pixel has been decoded by then.
_HARMLESS = "before marker 0xd9"


def decode_jpeg(
    data: bytes, probe: Probe, at_least: Size, *, salvage: bool = False, ink_profile: bytes | None = None
) -> Raster:
    """Decode to RGBX, perhaps shrunk; what a salvaged file lacks is grey. Raises Undecodable."""
    if ink_profile is not None and not salvage:
        inks = call("JPEG", imagecodecs.jpeg8_decode, data, outcolorspace="CMYK")
        rgb = inks_to_srgb(255 - raster_from(inks, probe.raster).samples, ink_profile)
        if rgb is not None:
            return Raster(rgb)
    expected = shrunk(probe.raster, shrink_for(probe.raster, at_least))
    try:
        samples = _decode(data, expected, strict=True)
    except ValueError as error:
        if _HARMLESS not in str(error) and not salvage:
            raise Undecodable("The JPEG's data is cut or damaged.", detail=str(error)) from error
        samples = _lenient(data, expected)
    if samples.shape[:2] != (expected.height, expected.width):
        raise Undecodable("The JPEG's pixels do not have the size its header states.")
    return Raster(samples, grey=probe.colour is ColourModel.GREY)


def _lenient(data: bytes, expected: Size) -> Samples:
    try:
        return _decode(data, expected, strict=False)
    except ValueError as error:
        raise Undecodable("The JPEG's data is cut or damaged.", detail=str(error)) from error


def _decode(data: bytes, expected: Size, *, strict: bool) -> Samples:
    samples = simplejpeg.decode_jpeg(
        data, "RGBX", min_height=expected.height, min_width=expected.width, min_factor=1.0, strict=strict
    )
    return cast("Samples", samples)
