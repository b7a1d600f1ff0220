"""Pictures that the simulator's tests draw: plain colours and a marked corner, in the formats that matter."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy
import pyvips
import simplejpeg
from numpy.typing import NDArray

Pixels = NDArray[numpy.uint8]
RED = (200, 10, 10)
GREEN = (10, 200, 10)
BLUE = (10, 10, 200)


def plain(width: int, height: int, colour: tuple[int, int, int] = RED) -> Pixels:
    pixels = numpy.empty((height, width, 3), dtype=numpy.uint8)
    pixels[:] = colour
    return pixels


def marked(width: int, height: int) -> Pixels:
    """Red on the left, green at the top right, blue below it: each way of turning it shows."""
    pixels = plain(width, height, RED)
    pixels[:, width // 2 :] = GREEN
    pixels[height // 2 :, width // 2 :] = BLUE
    return pixels


def jpeg(width: int, height: int, colour: tuple[int, int, int] = RED) -> bytes:
    return bytes(simplejpeg.encode_jpeg(plain(width, height, colour), quality=90))


def photograph(width: int, height: int) -> bytes:
    """A JPEG that no lossless file could hold as small: soft shapes under the noise of a sensor."""
    across, down = numpy.meshgrid(numpy.linspace(0, 9, width), numpy.linspace(0, 7, height))
    soft = 128 + 60 * numpy.sin(across) * numpy.cos(down)
    noise = numpy.random.default_rng(7).normal(0, 14, (height, width, 3))
    pixels = numpy.clip(soft[..., None] + noise, 0, 255).astype(numpy.uint8)
    return bytes(simplejpeg.encode_jpeg(pixels, quality=90))


def vips(pixels: Pixels, suffix: str, **options: object) -> bytes:
    return bytes(pyvips.Image.new_from_array(pixels).copy(interpretation="srgb").write_to_buffer(suffix, **options))


def png(width: int, height: int, colour: tuple[int, int, int] = RED) -> bytes:
    return vips(plain(width, height, colour), ".png")


def turned_jpeg(width: int, height: int, orientation: int) -> bytes:
    """Stored `width` × `height` with an EXIF orientation tag."""
    image = pyvips.Image.new_from_array(marked(width, height)).copy(interpretation="srgb")
    image.set_type(pyvips.GValue.gint_type, "orientation", orientation)
    return bytes(image.write_to_buffer(".jpg", Q=95))


def bmp(width: int, height: int) -> bytes:
    """A 24-bit bottom-up bitmap of one colour, by hand."""
    row = bytes((RED[2], RED[1], RED[0])) * width
    row += bytes(-len(row) % 4)
    body = row * height
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(body), 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", 14 + len(header) + len(body), 0, 0, 14 + len(header)) + header + body


def huge_png_header(width: int, height: int) -> bytes:
    """A PNG that claims any size and holds one compressed row."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\x00" * (width + 1))) + chunk(b"IEND", b"")


def data_url(data: bytes, media_type: str = "image/jpeg") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
