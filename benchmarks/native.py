"""The best C pipeline for a picture: every library's decoder, resizer and encoder for it, each as one step.

These are the contenders that the gateway's whole worker job is held against. They do no more than the pixels need: no
base64, no digest, no probe, no choice; PNG is written with a filter chosen beforehand. Steps fit together: a decoder
that delivers three bytes a pixel is followed by a resizer that takes three. Resizers and encoders that make worse
pixels (area, linear, 4:2:0) do not compete. djpeg does not either: simplejpeg carries the same libjpeg-turbo and has no
process to start.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import imagecodecs
import kornia_rs
import numpy as np
import simplejpeg
from PIL import Image

from benchmarks.timing import Timing
from gateway.media.codecs.decoders.vips import load_vips
from gateway.media.codecs.pillow_simd import four_bytes
from gateway.media.codecs.png_writer import survey, write_png
from gateway.media.codecs.scaling import pixels_needed, stored_target
from gateway.types import ColourModel, ImageFormat, ImagePlan, Probe, Size

Step = Callable[[], object]
# From the number of bands to what the layout is called; where a picture has alpha, the fourth byte is it.
_LAYOUTS = {1: "L", 3: "RGB", 4: "RGBX"}


@dataclass(frozen=True, slots=True)
class Steps:
    """Interchangeable ways for each step, by layout for decoding and resizing."""

    decode: Mapping[str, Mapping[str, Step]]
    resize: Mapping[str, Mapping[str, Step]]
    encode: Mapping[str, Step]

    def contenders(self) -> dict[str, Step]:
        """All of them, named ``step: way``."""
        return {f"{step}: {way}": run for step, ways in self._groups() for way, run in ways.items()}

    def _groups(self) -> Iterator[tuple[str, Mapping[str, Step]]]:
        for step, by_layout in (("decode", self.decode), ("resize", self.resize)):
            for layout, ways in by_layout.items():
                yield step, {f"{way} {layout}": run for way, run in ways.items()}
        yield "encode", self.encode

    def best(self, timings: Mapping[str, Timing]) -> dict[str, tuple[str, Timing]]:
        """The fastest chain of steps that fit together: its way and timing for each."""
        chains = []
        for layout in self.decode.keys() & self.resize.keys():
            ways = {step: _ways(timings, step, f" {layout}") for step in ("decode", "resize")}
            chains.append({step: _fastest(found) for step, found in ways.items()})
        chain = min(chains, key=lambda each: sum(timing.median_ms for _, timing in each.values()))
        return {**chain, "encode": _fastest(_ways(timings, "encode", ""))}


def _ways(timings: Mapping[str, Timing], step: str, suffix: str) -> dict[str, Timing]:
    start = f"{step}: "
    return {
        name.removeprefix(start): timing
        for name, timing in timings.items()
        if name.startswith(start) and name.endswith(suffix)
    }


def _fastest(ways: Mapping[str, Timing]) -> tuple[str, Timing]:
    return min(ways.items(), key=lambda way: way[1].median_ms)


def native_steps(data: bytes, probe: Probe, plan: ImagePlan, written: ImageFormat) -> Steps:
    """The plan's target is upright; the steps work on the picture as stored, as the gateway does."""
    stored = stored_target(probe, plan)
    decode: dict[str, dict[str, Step]] = {}
    resize: dict[str, dict[str, Step]] = {}
    for name, way in _decoders(data, probe, stored, plan).items():
        pixels = way()
        layout = _LAYOUTS[1 if pixels.ndim == 2 else pixels.shape[2]]
        decode.setdefault(layout, {})[name] = way
        if layout not in resize:
            resize[layout] = _resizers(pixels, stored, alpha=probe.has_alpha and layout == "RGBX")
    small = _small(next(iter(decode.values())), probe, stored)
    return Steps(decode, resize, _encoders(small, written))


def _decoders(data: bytes, probe: Probe, stored: Size, plan: ImagePlan) -> dict[str, Callable[[], Any]]:
    match probe.format:
        case ImageFormat.JPEG:
            return _jpeg_decoders(data, probe, stored, plan)
        case ImageFormat.PNG:
            return _png_decoders(data, probe)
        case ImageFormat.WEBP:
            return {
                "imagecodecs libwebp": lambda: imagecodecs.webp_decode(data),
                "imagecodecs libwebp, four bands,": lambda: imagecodecs.webp_decode(data, hasalpha=True),
                "libvips": lambda: load_vips().Image.webpload_buffer(data, access="sequential").numpy(),
            }
        case ImageFormat.AVIF:
            return {"imagecodecs libavif": lambda: imagecodecs.avif_decode(data, numthreads=1)}
        case _:
            return {"libvips": lambda: load_vips().Image.new_from_buffer(data, "", access="sequential").numpy()}


def _jpeg_decoders(data: bytes, probe: Probe, stored: Size, plan: ImagePlan) -> dict[str, Callable[[], Any]]:
    needed = pixels_needed(probe.raster, stored, plan.fidelity)
    floor = {"min_width": needed.width, "min_height": needed.height}
    ways: dict[str, Callable[[], Any]] = {
        "simplejpeg": lambda: simplejpeg.decode_jpeg(data, "RGBX", **floor),
        "simplejpeg, three bands,": lambda: simplejpeg.decode_jpeg(data, "RGB", **floor),
    }
    if needed == probe.raster:
        ways["imagecodecs"] = lambda: imagecodecs.jpeg8_decode(data)
    if probe.colour is ColourModel.GREY:
        ways["simplejpeg, grey,"] = lambda: simplejpeg.decode_jpeg(data, "GRAY", **floor)[:, :, 0]
    return ways


def _png_decoders(data: bytes, probe: Probe) -> dict[str, Callable[[], Any]]:
    vips = load_vips()

    def by_vips() -> Any:
        image = vips.Image.pngload_buffer(data, access="sequential")
        image = (image >> 8).cast("uchar") if image.format == "ushort" else image
        return (image.bandjoin(255) if image.bands == 3 else image).numpy()

    def by_libpng() -> Any:
        pixels = imagecodecs.png_decode(data)
        return (pixels >> 8).astype(np.uint8) if pixels.dtype == np.uint16 else pixels

    ways: dict[str, Callable[[], Any]] = {"libvips": by_vips, "imagecodecs libpng": by_libpng}
    mode = {1: "mono", 3: "rgb", 4: "rgba"}[4 if probe.has_alpha else 1 if probe.colour is ColourModel.GREY else 3]
    if probe.bits_per_sample == 8 and probe.colour is not ColourModel.PALETTE:
        size = (probe.raster.height, probe.raster.width)
        ways["kornia-rs"] = lambda: kornia_rs.io.decode_image_png_u8(data, size, mode)
    return ways


def _resizers(pixels: Any, stored: Size, *, alpha: bool) -> dict[str, Step]:
    """Each starts at the decoder's array and ends with the small picture, on white where there was alpha."""
    pixels = np.ascontiguousarray(pixels if pixels.ndim == 3 else pixels[:, :, None])
    return {
        "PIL bicubic": lambda: _by_pil(pixels, stored, alpha=alpha),
        "libvips cubic": lambda: _by_vips(pixels, stored, alpha=alpha),
    }


def _by_pil(pixels: Any, stored: Size, *, alpha: bool) -> Image.Image:
    size = (pixels.shape[1], pixels.shape[0])
    bands = pixels.shape[2]
    wide = four_bytes(pixels) if bands == 3 else pixels
    mode = "L" if bands == 1 else "RGBA" if alpha else "RGBX"
    image = Image.frombuffer(mode, size, wide, "raw", mode, 0, 1)
    if alpha:
        ground = Image.new("RGB", size, (255, 255, 255))
        ground.paste(image, (0, 0), image)
        image = ground
    return image.resize((stored.width, stored.height), Image.Resampling.BICUBIC)


def _by_vips(pixels: Any, stored: Size, *, alpha: bool) -> object:
    height, width, bands = pixels.shape
    image = load_vips().Image.new_from_memory(pixels, width, height, bands, "uchar")
    image = image.copy(interpretation="b-w" if bands == 1 else "srgb")
    image = image.flatten(background=[255, 255, 255]) if alpha else image
    return image.resize(stored.width / width, vscale=stored.height / height, kernel="cubic").write_to_memory()


def _small(ways: Mapping[str, Callable[[], Any]], probe: Probe, stored: Size) -> Image.Image:
    pixels = np.ascontiguousarray(next(iter(ways.values()))())
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    small = _by_pil(pixels, stored, alpha=probe.has_alpha and pixels.shape[2] == 4)
    return small.convert("L") if probe.colour is ColourModel.GREY and small.mode != "L" else small


def _encoders(small: Image.Image, written: ImageFormat) -> dict[str, Step]:
    if written is ImageFormat.JPEG:
        return {"PIL JPEG q95 4:4:4": lambda: small.save(io.BytesIO(), "JPEG", quality=95, subsampling=0)}
    channels = 1 if small.mode == "L" else 3
    raw = small.tobytes("raw", "L" if channels == 1 else "RGB")
    rows = np.frombuffer(raw, np.uint8).reshape(small.height, small.width * channels)
    best = survey(rows, channels).filter_type
    size = Size(small.width, small.height)
    return {"PNG one filter + isal": lambda: write_png(rows, size, channels, best)}
