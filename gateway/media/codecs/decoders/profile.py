"""Embedded colour profiles applied: to sRGB by imagecodecs (Little CMS), perceptual intent, on whole rasters.

Only where a policy asks for it. A profile that is broken, or made for another number of inks than the picture has, is
left aside: metadata never fails a picture that decodes.
"""

from __future__ import annotations

import imagecodecs
import numpy as np

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.calls import call
from gateway.media.codecs.decoders.raster import Raster, Samples

_SRGB = bytes(imagecodecs.cms_profile("srgb"))
_PERCEPTUAL = 0
# Rows worked on at a time, so that the conversion needs no second raster.
_BAND_ROWS = 256


def to_srgb(raster: Raster, profile: bytes | None) -> Raster:
    """The raster in sRGB; as it is where the profile does not fit it."""
    space = b"" if profile is None else profile[16:20]
    bands = raster.samples.shape[2]
    if profile is None or space not in (b"RGB ", b"GRAY") or (space == b"GRAY" and not raster.grey):
        return raster
    if space == b"RGB " and bands == 1:
        raster = Raster(np.repeat(raster.samples, 3, axis=2))
    samples = raster.samples if raster.samples.flags.writeable else raster.samples.copy()
    if space == b"GRAY" and bands == 1:
        samples = np.repeat(samples, 3, axis=2)
    source = "gray" if space == b"GRAY" else "rgb"
    for top in range(0, len(samples), _BAND_ROWS):
        band = samples[top : top + _BAND_ROWS]
        seen = band[:, :, 0] if source == "gray" else band[:, :, :3]
        converted = _transform(np.ascontiguousarray(seen), profile, source)
        if converted is None:
            return raster
        band[:, :, :3] = converted
    return Raster(samples, alpha=raster.alpha)


def inks_to_srgb(inks: Samples, profile: bytes | None) -> Samples | None:
    """RGB of four inks (255: all of it); ``None`` where the profile is not one of inks."""
    if profile is None or profile[16:20] != b"CMYK":
        return None
    rgb = np.empty((*inks.shape[:2], 3), np.uint8)
    for top in range(0, len(inks), _BAND_ROWS):
        converted = _transform(np.ascontiguousarray(inks[top : top + _BAND_ROWS, :, :4]), profile, "cmyk")
        if converted is None:
            return None
        rgb[top : top + _BAND_ROWS] = converted
    return rgb


def _transform(samples: Samples, profile: bytes, source: str) -> Samples | None:
    try:
        converted = call(
            "colour profile",
            lambda data: imagecodecs.cms_transform(
                data, profile, _SRGB, colorspace=source, outcolorspace="rgb", intent=_PERCEPTUAL
            ),
            samples,
        )
    except Undecodable:
        return None
    return np.asarray(converted, np.uint8)
