"""Pictures made on the spot, no two alike, in the encodings that clients send."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable

import imagecodecs
import numpy as np
import simplejpeg
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
# Signature and the IHDR chunk.
PNG_HEADER_BYTES = 33


def drawn(width: int, height: int, *, seed: int = 0) -> Pixels:
    """A smooth gradient with a bright corner block: every turn and flip of it is another picture."""
    x = np.linspace(0, 200, width, dtype=np.float32)[None, :]
    y = np.linspace(0, 200, height, dtype=np.float32)[:, None]
    red, green = np.broadcast_to(x, (height, width)), np.broadcast_to(y, (height, width))
    pixels = np.stack([red, green, (red + green) / 2 + seed % 50], axis=2).astype(np.uint8)
    pixels[: max(1, height // 4), : max(1, width // 3)] = (255, 40, seed % 256)
    return np.ascontiguousarray(pixels)


def jpeg(pixels: Pixels) -> bytes:
    """JPEG, 4:4:4 at quality 95."""
    return bytes(simplejpeg.encode_jpeg(pixels, quality=95, colorsubsampling="444"))


def png(pixels: Pixels, *, orientation: int = 1) -> bytes:
    """PNG, 8-bit RGB; an orientation goes into an eXIf chunk behind the header."""
    file = bytes(imagecodecs.png_encode(pixels, level=1))
    if orientation == 1:
        return file
    named = b"eXIf" + tiff_header(orientation)
    chunk = struct.pack(">I", len(named) - 4) + named + struct.pack(">I", zlib.crc32(named))
    return file[:PNG_HEADER_BYTES] + chunk + file[PNG_HEADER_BYTES:]


def webp(pixels: Pixels) -> bytes:
    """WebP, lossy."""
    return bytes(imagecodecs.webp_encode(pixels, level=90))


def tiff_header(orientation: int) -> bytes:
    """An EXIF block, big-endian, that holds the orientation and nothing else."""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def with_orientation(file: bytes, orientation: int) -> bytes:
    """The same JPEG with an EXIF orientation (1 to 8), right after its start marker."""
    block = b"Exif\0\0" + tiff_header(orientation)
    return file[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + file[2:]


# How a viewer has to turn the stored raster, per EXIF orientation (EXIF 2.32, 4.6.4 A).
UPRIGHT: dict[int, Callable[[Pixels], Pixels]] = {
    1: lambda p: p,
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.transpose(1, 0, 2),
    6: lambda p: np.rot90(p, -1),
    7: lambda p: p[::-1, ::-1].transpose(1, 0, 2),
    8: lambda p: np.rot90(p, 1),
}


def upright(pixels: Pixels, orientation: int) -> Pixels:
    """What people see of a raster stored with this orientation."""
    return np.ascontiguousarray(UPRIGHT[orientation](pixels))


def data_url(file: bytes) -> str:
    """The file as a data URL with its true media type."""
    kind = "jpeg" if file[:2] == b"\xff\xd8" else "png" if file[:4] == b"\x89PNG" else "webp"
    return f"data:image/{kind};base64,{base64.b64encode(file).decode()}"
