"""The best C pipeline for a picture: every library's decoder, resizer and encoder for it, each as one step.

These are the contenders that the gateway's whole worker job is held against. They do no more than the pixels need: no
base64, no digest, no probe, no choice; PNG is written with a filter chosen beforehand. Resizers and encoders that make
worse pixels (area, linear, 4:2:0) do not compete. djpeg does not either: simplejpeg carries the same libjpeg-turbo and
has no process to start.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import imagecodecs
import numpy as np
import simplejpeg
from PIL import Image

from gateway.media.codecs.decoders.vips import load_vips
from gateway.media.codecs.png_writer import survey, write_png
from gateway.media.codecs.scaling import pixels_needed, shrink_for, shrunk, stored_target
from gateway.types import ImageFormat, ImagePlan, Probe, Size

Step = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Steps:
    """Interchangeable ways to do each step; the sum of the fastest of each is the native cost."""

    decode: Mapping[str, Step]
    resize: Mapping[str, Step]
    encode: Mapping[str, Step]

    def contenders(self) -> dict[str, Step]:
        """All of them, named ``step: way``."""
        groups = (("decode", self.decode), ("resize", self.resize), ("encode", self.encode))
        return {f"{step}: {way}": run for step, ways in groups for way, run in ways.items()}


def native_steps(data: bytes, probe: Probe, plan: ImagePlan, written: ImageFormat) -> Steps:
    """The plan's target is upright; the steps work on the picture as stored, as the gateway does."""
    stored = stored_target(probe, plan)
    needed = shrunk(probe.raster, shrink_for(probe.raster, pixels_needed(stored, plan.fidelity)))
    decode = _jpeg_decoders(data, probe, needed) if probe.format is ImageFormat.JPEG else _other_decoders(data, probe)
    pixels = _rgbx(data, probe, needed)
    small = _image(pixels).resize((stored.width, stored.height), Image.Resampling.BICUBIC)
    return Steps(decode, _resizers(pixels, stored), _encoders(small, written))


def _jpeg_decoders(data: bytes, probe: Probe, needed: Size) -> dict[str, Step]:
    floor = {"min_width": needed.width, "min_height": needed.height}
    ways: dict[str, Step] = {
        "simplejpeg RGBX": lambda: simplejpeg.decode_jpeg(data, "RGBX", **floor),
        "simplejpeg RGB": lambda: simplejpeg.decode_jpeg(data, "RGB", **floor),
    }
    if needed == probe.raster:
        ways["imagecodecs"] = lambda: imagecodecs.jpeg8_decode(data)
    return ways


def _other_decoders(data: bytes, probe: Probe) -> dict[str, Step]:
    vips = load_vips()
    ways: dict[str, Step] = {
        "libvips": lambda: vips.Image.new_from_buffer(data, "", access="sequential").write_to_memory()
    }
    if probe.format is ImageFormat.PNG:
        ways["imagecodecs libpng"] = lambda: imagecodecs.png_decode(data)
    if probe.format is ImageFormat.WEBP:
        ways["imagecodecs libwebp"] = lambda: imagecodecs.webp_decode(data)
    return ways


def _rgbx(data: bytes, probe: Probe, needed: Size) -> Any:
    if probe.format is ImageFormat.JPEG:
        return simplejpeg.decode_jpeg(data, "RGBX", min_width=needed.width, min_height=needed.height)
    image = load_vips().Image.new_from_buffer(data, "").colourspace("srgb")
    image = image.extract_band(0, n=3) if image.bands > 3 else image
    return image.bandjoin(255).numpy()


def _image(pixels: Any) -> Image.Image:
    return Image.frombuffer("RGBX", (pixels.shape[1], pixels.shape[0]), pixels, "raw", "RGBX", 0, 1)


def _resizers(pixels: Any, stored: Size) -> dict[str, Step]:
    vips, image = load_vips(), _image(pixels)
    rgb = np.ascontiguousarray(pixels[:, :, :3])
    height, width = rgb.shape[:2]
    factors = {"vscale": stored.height / height, "kernel": "cubic"}

    def by_vips() -> object:
        source = vips.Image.new_from_memory(rgb, width, height, 3, "uchar")
        return source.resize(stored.width / width, **factors).write_to_memory()

    return {
        "PIL bicubic": lambda: image.resize((stored.width, stored.height), Image.Resampling.BICUBIC),
        "libvips cubic": by_vips,
    }


def _encoders(small: Image.Image, written: ImageFormat) -> dict[str, Step]:
    if written is ImageFormat.JPEG:
        return {"PIL JPEG q95 4:4:4": lambda: small.save(io.BytesIO(), "JPEG", quality=95, subsampling=0)}
    raw = small.tobytes("raw", "RGB")
    rows = np.frombuffer(raw, np.uint8).reshape(small.height, small.width * 3)
    best = survey(rows, 3).filter_type
    size = Size(small.width, small.height)
    return {"PNG one filter + isal": lambda: write_png(rows, size, 3, best)}
