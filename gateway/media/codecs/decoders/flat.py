"""Still WebP and the first frame of GIF by imagecodecs (libwebp, giflib)."""

from __future__ import annotations

import imagecodecs
import numpy as np

from gateway.media.codecs.decoders.calls import call
from gateway.media.codecs.decoders.raster import Raster, raster_from
from gateway.media.codecs.probe.gif import first_frame
from gateway.types import Probe


def decode_still_webp(data: bytes, probe: Probe) -> Raster:
    """Asks for four bands even of an opaque picture: the resizer takes RGBX without a copy. Raises Undecodable."""
    samples = call("WebP", imagecodecs.webp_decode, data, hasalpha=True)
    return Raster(raster_from(samples, probe.raster).samples, alpha=probe.has_alpha)


def decode_gif(data: bytes, probe: Probe) -> Raster:
    """The first frame, composed on the canvas; where the canvas shows beside it, it is transparent.

    The file is cut behind that frame, so that a long animation costs one frame's memory. giflib is strict about data
    that ends early, which libnsgif fills with black. Raises Undecodable.
    """
    frame = first_frame(data)
    raster = raster_from(call("GIF", imagecodecs.gif_decode, data[: frame.stop] + b";"), probe.raster)
    if raster.alpha or frame.covers(probe.raster):
        return raster
    canvas = np.zeros((probe.raster.height, probe.raster.width, 4), np.uint8)
    bottom, right = frame.top + frame.size.height, frame.left + frame.size.width
    canvas[:, :, :3] = raster.samples
    canvas[frame.top : bottom, frame.left : right, 3] = 255
    return Raster(canvas, alpha=True)
