"""JPEG 2000 by imagecodecs (OpenJPEG): palettes are expanded and sYCC is brought to RGB there, inks here."""

from __future__ import annotations

import imagecodecs
import numpy as np

from gateway.media.codecs.decoders.calls import call
from gateway.media.codecs.decoders.inks import inks_to_rgb
from gateway.media.codecs.decoders.raster import Raster, raster_from
from gateway.types import ColourModel, Probe


def decode_jpeg2000(data: bytes, probe: Probe) -> Raster:
    """Decode. Raises Undecodable."""
    samples = call("JPEG 2000", imagecodecs.jpeg2k_decode, data, numthreads=1)
    bits = probe.bits_per_sample
    if samples.dtype == np.uint16:
        samples = samples << (16 - bits)
    elif bits < 8:
        samples = (samples.astype(np.uint16) * 255 // (2**bits - 1)).astype(np.uint8)
    raster = raster_from(samples, probe.raster)
    if probe.colour is ColourModel.CMYK:
        return Raster(inks_to_rgb(raster.samples))
    return Raster(raster.samples, alpha=raster.alpha and probe.has_alpha, grey=raster.grey)
