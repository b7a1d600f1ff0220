"""The steps both backends share: decode, resize as stored, turn upright, encode. A backend is this with its resizer.

The picture is resized before it is turned, because turning a small picture is cheap: the target's sides are swapped
where the turn swaps them. Passes run horizontal first as seen upright, which is what the engines' processors do
(other orders differ by up to 28 grey levels where one side grows while the other shrinks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TypeAlias
from zlib import crc32

import numpy as np
import PIL
from PIL import Image

from gateway.media.codecs import Rendered
from gateway.media.codecs.decoders import Raster, decode, extras
from gateway.media.codecs.decoders.vips import load_vips
from gateway.media.codecs.encode import Wish, encode
from gateway.media.codecs.probe.webp import is_lossless
from gateway.media.codecs.scaling import pixels_needed, stored_target
from gateway.types import ImageFormat, ImagePlan, OutputFormat, Probe, Size

# Part of every fingerprint; raised with any change here that changes bytes.
_REVISION = 4
_TURNS: Mapping[int, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class ResizeJob:
    """The raster, the size it shall have as stored, the colour under transparent pixels, and the order of passes."""

    raster: Raster
    target: Size
    background: tuple[int, int, int]
    vertical_first: bool = False

    @property
    def grey(self) -> bool:
        """Whether the result is grey: the picture is, and so is what shows through it."""
        return self.raster.grey and (not self.raster.alpha or len(set(self.background)) == 1)

    @property
    def passes(self) -> tuple[Size, ...]:
        """The sizes to go through; empty when the size is right already."""
        now = self.raster.size
        middle = Size(now.width, self.target.height) if self.vertical_first else Size(self.target.width, now.height)
        steps = []
        for step in (middle, self.target):
            if step != now:
                steps.append(step)
                now = step
        return tuple(steps)


# Flattens and resizes; delivers mode L when the job is grey, else RGB or RGBX.
Resizer: TypeAlias = Callable[[ResizeJob], Image.Image]


class Pipeline:
    """A codec backend: the shared steps around one resizer."""

    def __init__(self, name: str, resizer: Resizer) -> None:
        self._resizer = resizer
        self.name = name
        self._versions = _versions(name)

    @cached_property
    def fingerprint(self) -> str:
        """Names and versions, then a checksum of what this machine makes of a fixed picture.

        Versions cannot tell what a library does with this CPU's instructions; the checksum can. Two workers with equal
        fingerprints made equal bytes at least once. Made when it is asked for: the first work, in threads perhaps.
        """
        return f"{self._versions}+{_self_check(self._resizer):08x}"

    def render(self, data: bytes, probe: Probe, plan: ImagePlan) -> Rendered:
        """See CodecBackend.render."""
        target = stored_target(probe, plan)
        raster = decode(data, probe, pixels_needed(probe.raster, target, plan.fidelity), plan)
        job = ResizeJob(raster, target, plan.background, vertical_first=probe.orientation >= 5)
        image = self._resizer(job)
        turn = _TURNS.get(probe.orientation)
        if turn is not None:
            image = image.transpose(turn)
        wish = Wish(plan.output, plan.jpeg_quality, _came_lossy(data, probe), keeps_pixels=raster.size == target)
        encoded, written = encode(image, wish)
        return Rendered(encoded, written, Size(image.width, image.height))


def _came_lossy(data: bytes, probe: Probe) -> bool:
    """AVIF and HEIC can be lossless, and next to never are."""
    if probe.format is ImageFormat.WEBP:
        return not is_lossless(data)
    return probe.format in (ImageFormat.JPEG, ImageFormat.AVIF, ImageFormat.HEIC)


def _versions(name: str) -> str:
    vips = load_vips()
    parts = (
        f"{name}-r{_REVISION}",
        f"pil{PIL.__version__}",
        f"vips{vips.version(0)}.{vips.version(1)}.{vips.version(2)}",
        *(f"{package}{version(package)}" for package in ("simplejpeg", "imagecodecs", "kornia-rs", "isal")),
        *extras(),
    )
    return "+".join(parts)


def _self_check(resizer: Resizer) -> int:
    rows, columns = np.indices((144, 208), dtype=np.uint32)
    noise = ((rows * 2654435761 + columns * 40503) >> 7) % 61
    bands = [(rows * 3 + noise) % 256, (columns * 2 + noise) % 256, (rows * columns + noise) % 256]
    raster = Raster(np.ascontiguousarray(np.stack(bands, axis=2).astype(np.uint8)))
    image = resizer(ResizeJob(raster, Size(96, 80), (255, 255, 255)))
    checksum = 0
    for output in (OutputFormat.JPEG, OutputFormat.PNG):
        encoded, _ = encode(image, Wish(output, 95, lossy_source=False, keeps_pixels=False))
        checksum = crc32(encoded, checksum)
    return checksum
