"""Pictures as a strict decoder sees them, and what the cases ask of them.

Decided here: taking a picture out of a body, decoding it completely, comparing pixels. JPEG goes through simplejpeg
(strict), everything else through libvips with every warning an error; orientation tags are read, never applied.
"""

from __future__ import annotations

import base64
import binascii
import random
import re
import struct
import urllib.parse
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyvips
import simplejpeg
from numpy.typing import NDArray

CANONICAL_DATA_URL = re.compile(
    r"data:image/(?:png|jpeg|webp|gif|bmp|tiff|avif|heic);base64,(?:[A-Za-z0-9+/]{4})*"
    r"(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"
)
# Pillow's default limit against decompression bombs, as an engine's strict decoder has it.
_MAX_DECODED_PIXELS = 89_478_485
_MAGIC = (
    ("PNG", b"\x89PNG\r\n\x1a\n"),
    ("JPEG", b"\xff\xd8\xff"),
    ("GIF", b"GIF8"),
    ("BMP", b"BM"),
    ("TIFF", b"II*\0"),
    ("TIFF", b"MM\0*"),
)
_DOMINANCE = 60
_WHITE_ABOVE = 200
_BLACK_BELOW = 80


class BadPicture(Exception):
    """A string that is no picture, or one that a strict decoder refuses."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A decoded picture: its stored raster as it is, and what its file says."""

    data: bytes
    media_type: str
    format: str
    width: int
    height: int
    bands: int
    is_eight_bit: bool
    is_cmyk: bool
    orientation: int
    frames: int
    pixels: NDArray[np.uint8]

    @property
    def is_rgb(self) -> bool:
        """Eight bits a sample, neither CMYK nor any transparency; grey counts."""
        return self.is_eight_bit and not self.is_cmyk and self.bands in {1, 3}

    @property
    def rgb(self) -> NDArray[np.uint8]:
        """The raster as height x width x 3, alpha dropped."""
        return np.repeat(self.pixels[:, :, :1], 3, axis=2) if self.bands < 3 else self.pixels[:, :, :3]


def format_of(data: bytes) -> str:
    """The format by the file's first bytes; empty when it is none that is known."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp":
        return "AVIF" if b"avif" in data[8:32] else "HEIC"
    return next((name for name, magic in _MAGIC if data.startswith(magic)), "")


def picture_bytes(text: str, *, encoding: str = "data-url") -> tuple[str, bytes]:
    """Media type and bytes of a data URL (or of bare base64). Raises BadPicture."""
    if encoding == "base64":
        return "", _from_base64(text)
    scheme, comma, payload = text.partition(",")
    if not comma or not scheme.lower().startswith("data:"):
        raise BadPicture(f"no data URL: {text[:40]!r}")
    media_type = scheme[5:].split(";")[0].strip().lower()
    return media_type, _from_base64(payload)


def _from_base64(text: str) -> bytes:
    bare = re.sub(r"\s+", "", urllib.parse.unquote(text))
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadPicture(f"base64: {error}") from None


def decode(data: bytes, media_type: str = "") -> Picture:
    """Decode completely. Raises BadPicture with the decoder's reason."""
    try:
        image = pyvips.Image.new_from_buffer(data, "", fail_on="warning", access="random")
        pixel_count = image.width * image.height
        if pixel_count > _MAX_DECODED_PIXELS:
            raise BadPicture(f"{pixel_count} pixels are above a decoder's default limit")
        fields = image.get_fields()
        frames = int(image.get("n-pages")) if "n-pages" in fields else 1
        orientation = int(image.get("orientation")) if "orientation" in fields else 0
        is_cmyk = image.interpretation == "cmyk"
        form = format_of(data)
        if form == "JPEG" and not is_cmyk:
            colorspace = "GRAY" if image.bands == 1 else "RGB"
            pixels = simplejpeg.decode_jpeg(data, colorspace=colorspace, strict=True)
        else:
            pixels = _eight_bit(image)
    except (pyvips.Error, ValueError) as error:
        raise BadPicture(str(error).strip().splitlines()[0][:200]) from None
    return Picture(
        data, media_type, form, image.width, image.height, image.bands, image.format == "uchar", is_cmyk,
        orientation, frames, pixels,
    )  # fmt: skip


def _eight_bit(image: Any) -> NDArray[np.uint8]:
    raster = np.asarray(image.numpy())
    if raster.ndim == 2:
        raster = raster[:, :, None]
    return raster if raster.dtype == np.uint8 else (raster.astype(np.uint32) >> 8).astype(np.uint8)


def pixel_problem(picture: Picture, wanted: dict[str, Any]) -> str | None:
    """What is wrong at one place of a picture, or None."""
    rgb = picture.rgb
    where = wanted["rel"]
    if where == "any":
        distance = np.abs(rgb.astype(np.int16) - np.array(wanted["rgb"], np.int16)).max(axis=2)
        return None if (distance <= wanted["tol"]).any() else f"no pixel is {wanted['rgb']} +-{wanted['tol']}"
    x = min(int(where[0] * picture.width), picture.width - 1)
    y = min(int(where[1] * picture.height), picture.height - 1)
    found = [int(channel) for channel in rgb[y, x]]
    if "dominant" in wanted:
        return None if _dominates(found, wanted["dominant"]) else f"{found} at {where} is not {wanted['dominant']}"
    if all(abs(a - b) <= wanted["tol"] for a, b in zip(found, wanted["rgb"], strict=True)):
        return None
    return f"{found} at {where}, not {wanted['rgb']} +-{wanted['tol']}"


def _dominates(found: list[int], colour: str) -> bool:
    if colour == "white":
        return min(found) > _WHITE_ABOVE
    if colour == "black":
        return max(found) < _BLACK_BELOW
    index = ("red", "green", "blue").index(colour)
    return all(found[index] - other >= _DOMINANCE for at, other in enumerate(found) if at != index)


def mean_abs_error(a: Picture, b: Picture) -> float:
    """Mean difference per channel of two pictures of one size; infinite for two sizes."""
    if (a.width, a.height) != (b.width, b.height):
        return float("inf")
    return float(np.abs(a.rgb.astype(np.int16) - b.rgb.astype(np.int16)).mean())


def flat_png(width: int, height: int, rgb: tuple[int, int, int]) -> bytes:
    """A PNG of one colour, made without an image library."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes(rgb) * width) * height
    return b"".join((_MAGIC[0][1], chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")))


def recoloured(text: str, rng: random.Random) -> str:
    """A data URL of a picture of the same size in another flat colour."""
    _, data = picture_bytes(text)
    image = pyvips.Image.new_from_buffer(data, "")
    colour = (rng.randrange(256), rng.randrange(256), rng.randrange(256))
    made = flat_png(image.width, image.height, colour)
    return "data:image/png;base64," + base64.b64encode(made).decode()
