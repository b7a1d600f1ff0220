"""The backend ``pillow-simd``: BICUBIC by pillow-simd on a four-byte buffer that another library decoded.

PIL never sees the file: this build of Pillow 12.1 lacks later security fixes, all of which concern opening files.
Grey pictures are resized as RGB too, because only four-byte modes are vectorised.
"""

from __future__ import annotations

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from gateway.media.codecs.decoders.raster import Samples
from gateway.media.codecs.pipeline import Pipeline, ResizeJob


def load() -> Pipeline:
    """The backend. Raises ImportError when PIL is not pillow-simd."""
    if ".post" not in PIL.__version__:
        raise ImportError(f"PIL is Pillow {PIL.__version__}, not pillow-simd")
    return Pipeline("pillow-simd", resize)


def resize(job: ResizeJob) -> Image.Image:
    """Flatten and resize."""
    image = flattened(job)
    if image.mode == "L" and job.passes:
        image = image.convert("RGB")
    for size in job.passes:
        image = image.resize((size.width, size.height), Image.Resampling.BICUBIC)
    return image.getchannel(0) if job.grey and image.mode != "L" else image


def flattened(job: ResizeJob) -> Image.Image:
    """The raster as an image of mode L, RGB or RGBX: without a copy where it has four bytes a pixel already."""
    samples = job.raster.samples
    size = (samples.shape[1], samples.shape[0])
    if not job.raster.alpha:
        mode = "L" if samples.shape[2] == 1 else "RGBX"
        samples = four_bytes(samples) if samples.shape[2] == 3 else samples
        return Image.frombuffer(mode, size, samples, "raw", mode, 0, 1)
    picture = Image.frombuffer("RGBA", size, samples, "raw", "RGBA", 0, 1)
    ground = Image.new("RGB", size, job.background)
    ground.paste(picture, (0, 0), picture)
    return ground


def four_bytes(samples: Samples) -> Samples:
    """RGB with a fourth byte of no meaning behind each pixel, a third faster than PIL unpacks.

    Each pixel is copied as four bytes, the fourth being the next one's first; the last pixel has none after it.
    """
    height, width, _ = samples.shape
    wide = np.empty((height, width, 4), np.uint8)
    overlapping: NDArray[np.uint32] = np.ndarray((height * width - 1,), np.uint32, samples, strides=(3,))
    wide.reshape(-1).view(np.uint32)[:-1] = overlapping
    wide[-1, -1] = (*samples[-1, -1], 0)
    return wide
