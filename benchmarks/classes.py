"""The classes of pictures that are measured: which picture, how near to a full decode, under which key.

Those that the demo does not show are made here from those it does, once, beside them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import imagecodecs
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from benchmarks.pictures import DEFAULT_DIRECTORY, Picture
from gateway.types import Fidelity

_Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PictureClass:
    """``key`` names it in the report."""

    key: str
    picture: Picture
    fidelity: Fidelity = Fidelity.EXACT


_KEYS = {
    "phone-12mp": "jpeg_12mp",
    "phone-12mp-portrait": "jpeg_12mp_portrait",
    "camera-48mp": "jpeg_48mp",
    "progressive": "jpeg_12mp_progressive",
    "scan-a4": "jpeg_a4_scan",
    "phone-screenshot": "png_screenshot",
    "dashboard-4k": "png_4k_dashboard",
    "scan-a4-grey": "png_a4_grey",
    "photo-png": "png_12mp_photo",
    "screenshot-rgba": "png_rgba",
    "chart-palette": "png_palette",
    "screenshot-16-bit": "png_16bit",
    "photo-webp": "webp_12mp",
    "photo-avif": "avif_12mp",
}
_ALSO_FAST = ("phone-12mp", "camera-48mp", "progressive")


def classes_of(pictures: Sequence[Picture]) -> list[PictureClass]:
    """The measured classes in a fixed order; of the user's own pictures, each is one."""
    if any(picture.kind == "own" for picture in pictures):
        return [PictureClass(picture.name, picture) for picture in pictures]
    by_name = {picture.name: picture for picture in (*pictures, *_derived(pictures))}
    found = []
    for name, key in _KEYS.items():
        if name in by_name:
            found.append(PictureClass(key, by_name[name]))
            if name in _ALSO_FAST:
                found.append(PictureClass(f"{key}_fast", by_name[name], Fidelity.FAST))
    return found


def _derived(pictures: Sequence[Picture]) -> Iterator[Picture]:
    by_name = {picture.name: picture for picture in pictures}
    recipes: tuple[tuple[str, str, str, Callable[[_Pixels], bytes]], ...] = (
        ("photo-avif", "photo-webp", ".avif", _avif),
        ("photo-png", "phone-12mp", ".png", _png),
        ("scan-a4-grey", "scan-a4", ".png", lambda pixels: _png(pixels[:, :, 1])),
        ("screenshot-rgba", "phone-screenshot", ".png", _rgba_png),
        ("screenshot-16-bit", "phone-screenshot", ".png", _deep_png),
    )
    for name, origin, suffix, encode in recipes:
        picture = by_name.get(origin)
        if picture is None:
            continue
        path = DEFAULT_DIRECTORY / f"{name}{suffix}"
        if not path.is_file() or path.stat().st_mtime < picture.path.stat().st_mtime:
            path.write_bytes(encode(_pixels(picture.path)))
        yield Picture(name, path, picture.kind, picture.source)


def _pixels(path: Path) -> _Pixels:
    data = path.read_bytes()
    if path.suffix == ".jpg":
        return np.asarray(simplejpeg.decode_jpeg(data, "RGB"))
    decode = imagecodecs.webp_decode if path.suffix == ".webp" else imagecodecs.png_decode
    return np.ascontiguousarray(decode(data)[:, :, :3])


def _avif(pixels: _Pixels) -> bytes:
    return bytes(imagecodecs.avif_encode(pixels, level=70, speed=8, numthreads=2))


def _png(pixels: _Pixels) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def _rgba_png(pixels: _Pixels) -> bytes:
    alpha = np.full((*pixels.shape[:2], 1), 255, np.uint8)
    alpha[:40] = 128  # a translucent bar, as window managers leave one
    return _png(np.concatenate((pixels, alpha), axis=2))


def _deep_png(pixels: _Pixels) -> bytes:
    return bytes(imagecodecs.png_encode(pixels.astype(np.uint16) * 257, level=6))
