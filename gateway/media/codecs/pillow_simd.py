"""The backend ``pillow-simd``: BICUBIC by pillow-simd on a four-byte buffer that another library decoded.

PIL never sees the file: this build of Pillow 12.1 lacks later security fixes, all of which concern opening files.
Grey pictures are resized as RGB too, because only four-byte modes are vectorised.
"""

from __future__ import annotations

import PIL
from PIL import Image

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
        mode = {1: "L", 3: "RGB", 4: "RGBX"}[samples.shape[2]]
        return Image.frombuffer(mode, size, samples, "raw", mode, 0, 1)
    picture = Image.frombuffer("RGBA", size, samples, "raw", "RGBA", 0, 1)
    ground = Image.new("RGB", size, job.background)
    ground.paste(picture, (0, 0), picture)
    return ground
