"""The pictures of demo and benchmarks: real photographs in phone, camera and scanner sizes; screens and graphics drawn.

``build`` makes them once and keeps them; nothing of them is committed. ``python -m benchmarks.pictures DIR`` prints
one JSON line for each, so that a program which must not load PIL can have them made by a child process.
"""

from __future__ import annotations

import io
import json
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import imagecodecs
import numpy as np
import simplejpeg
from PIL import Image

from benchmarks.drawing import draw_chart, draw_chat, draw_dashboard, draw_logo, draw_page, draw_photo_like
from benchmarks.photographs import Photograph, fetch_photographs

DEFAULT_DIRECTORY = Path(__file__).parent.parent / ".pictures"
# Names the recipe below; pictures made by another one are made again.
_RECIPE = 1
_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})


@dataclass(frozen=True, slots=True)
class Picture:
    """``kind`` is photo, scan, screenshot or graphic; ``source`` says where its content comes from."""

    name: str
    path: Path
    kind: str
    source: str


def build(directory: Path = DEFAULT_DIRECTORY) -> list[Picture]:
    """Make the pictures, or find them made. Takes about a minute and 40 MB of downloads the first time."""
    manifest = directory / "manifest.json"
    known = _read_manifest(manifest)
    if known:
        return known
    directory.mkdir(parents=True, exist_ok=True)
    pictures = list(_make_all(directory, _Sources(fetch_photographs(directory / "originals"))))
    listed = [{**asdict(picture), "path": picture.path.name} for picture in pictures]
    manifest.write_text(json.dumps({"recipe": _RECIPE, "pictures": listed}, indent=1))
    return pictures


def own_pictures(directory: Path) -> list[Picture]:
    """The user's own folder (``--images DIR``), in the order of names."""
    paths = sorted(path for path in directory.iterdir() if path.suffix.lower() in _SUFFIXES)
    return [Picture(path.stem, path, "own", str(directory)) for path in paths]


def _read_manifest(manifest: Path) -> list[Picture]:
    if not manifest.is_file():
        return []
    content = json.loads(manifest.read_text())
    if content.get("recipe") != _RECIPE:
        return []
    listed = [Picture(**{**entry, "path": manifest.parent / entry["path"]}) for entry in content["pictures"]]
    return listed if all(picture.path.is_file() for picture in listed) else []


class _Sources:
    """Photographs by a word in their name, with drawn stand-ins where there are none."""

    def __init__(self, photographs: list[Photograph]) -> None:
        self._photographs = photographs

    def original(self, word: str) -> Photograph | None:
        """The file itself, when its package could be had."""
        return next((photograph for photograph in self._photographs if word in photograph.path.name), None)

    def photo(self, word: str, width: int, height: int) -> tuple[Image.Image, str]:
        """A photograph cropped to the shape and brought to the size, with the noise of a sensor."""
        photograph = self.original(word)
        if photograph is None:
            return draw_photo_like(width, height, seed=len(word)), "drawn (no photograph could be fetched)"
        pixels = simplejpeg.decode_jpeg(photograph.path.read_bytes(), "RGB")
        fitted = _cover(Image.fromarray(pixels), width, height)
        return _with_noise(fitted, seed=len(word)), f"{photograph.path.name}, {photograph.source}"


def _cover(picture: Image.Image, width: int, height: int) -> Image.Image:
    scale = max(width / picture.width, height / picture.height)
    inner_width, inner_height = width / scale, height / scale
    left, top = (picture.width - inner_width) / 2, (picture.height - inner_height) / 2
    box = (left, top, left + inner_width, top + inner_height)
    return picture.resize((width, height), Image.Resampling.BICUBIC, box=box)


def _with_noise(picture: Image.Image, seed: int) -> Image.Image:
    """Rescaling removes a sensor's noise, without which a JPEG is a third of its real size."""
    rng = np.random.default_rng(seed)
    pixels = np.asarray(picture)
    out = np.empty_like(pixels)
    for start in range(0, pixels.shape[0], 256):
        part = pixels[start : start + 256]
        out[start : start + 256] = np.clip(part + rng.normal(0, 2.5, part.shape), 0, 255)
    return Image.fromarray(out)


def _exif(orientation: int) -> bytes:
    """A little-endian EXIF block with a make and an orientation."""
    make = b"Phone\0"
    entries = struct.pack("<HHII", 0x010F, 2, len(make), 38) + struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + struct.pack("<I", 0) + make


def _jpeg(picture: Image.Image, quality: int = 90, orientation: int | None = None) -> bytes:
    buffer = io.BytesIO()
    options = {} if orientation is None else {"exif": _exif(orientation)}
    picture.save(buffer, "JPEG", quality=quality, subsampling="4:2:0", **options)
    return buffer.getvalue()


def _png(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def _webp(picture: Image.Image) -> bytes:
    return bytes(imagecodecs.webp_encode(np.asarray(picture), level=80, lossless=False))


def _make_all(directory: Path, sources: _Sources) -> Iterable[Picture]:
    def keep(name: str, suffix: str, data: bytes, kind: str, source: str) -> Picture:
        path = directory / f"{name}{suffix}"
        path.write_bytes(data)
        return Picture(name, path, kind, source)

    def photo(
        name: str, word: str, size: tuple[int, int], encode: Callable[[Image.Image], bytes], suffix: str = ".jpg"
    ) -> Picture:
        picture, source = sources.photo(word, *size)
        return keep(name, suffix, encode(picture), "photo", source)

    yield photo("phone-12mp", "picosdeeuropa", (4032, 3024), _jpeg)
    yield photo(
        "phone-12mp-portrait",
        "friends",
        (3024, 4032),
        lambda picture: _jpeg(picture.transpose(Image.Transpose.ROTATE_90), orientation=6),
    )
    yield photo("camera-48mp", "life", (8064, 6048), _jpeg)
    yield photo("photo-webp", "Dragonfly", (4032, 3024), _webp, ".webp")
    yield photo("photo-small", "seeding", (896, 672), _jpeg)
    inset, _ = sources.photo("sunset", 1200, 800)
    yield keep("phone-screenshot", ".png", _png(draw_chat(1170, 2532, inset)), "screenshot", "drawn")
    yield keep("dashboard-4k", ".png", _png(draw_dashboard(3840, 2160)), "screenshot", "drawn")
    yield keep("scan-a4", ".jpg", _jpeg(draw_page(2480, 3508)), "scan", "drawn")
    yield keep("logo-alpha", ".png", _png(draw_logo(1600)), "graphic", "drawn")
    yield keep("chart-palette", ".png", _png(draw_chart(2400, 1500)), "graphic", "drawn")
    for name, word in (("progressive", "sunset"), ("portrait-photo", "Wine"), ("astronaut", "astronaut")):
        photograph = sources.original(word)
        if photograph is not None:
            data = photograph.path.read_bytes()
            yield keep(name, photograph.path.suffix, data, "photo", f"{photograph.path.name}, {photograph.source}")


def main() -> None:
    """Print one JSON line for each picture."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_DIRECTORY
    for picture in build(directory):
        print(json.dumps({**asdict(picture), "path": str(picture.path)}))


if __name__ == "__main__":
    main()
