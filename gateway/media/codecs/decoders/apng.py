"""Frames of animated PNG (W3C PNG third edition §11.3.4): each is decoded as a PNG of its own and put on the canvas.

libvips knows no APNG, and imagecodecs ignores how frames dispose of and blend with what was there before. Bounded by
the frames up to the one asked for, each within the canvas, which the header announced.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.raster import Raster, Samples
from gateway.media.codecs.decoders.vips import decode_page
from gateway.media.codecs.probe.png import SIGNATURE, probe_png
from gateway.media.codecs.probe.window import Window
from gateway.types import Probe, Size

_TO_BACKGROUND, _TO_PREVIOUS = 1, 2
_OVER = 1
# Chunks that a frame needs to be a picture of its own; everything else is left out.
_SHARED = (b"PLTE", b"tRNS")


@dataclass(frozen=True, slots=True)
class _Frame:
    """One frame: its place on the canvas, what becomes of it afterwards, and its compressed rows."""

    size: Size
    left: int
    top: int
    dispose: int
    blend: int
    data: list[bytes]


def decode_apng_frame(data: bytes, probe: Probe, frame: int) -> Raster:
    """The canvas as frame ``frame`` shows it. Raises Undecodable."""
    canvas = np.zeros((probe.raster.height, probe.raster.width, 4), np.uint8)
    head, shared = data[16:29], b"".join(_chunk(name, body) for name, body in _chunks(data) if name in _SHARED)
    for index, each in enumerate(_frames(data)):
        before = canvas.copy() if each.dispose == _TO_PREVIOUS else None
        region = _region(canvas, each)
        _draw(region, _pixels(each, head, shared), each.blend)
        if index == frame:
            return Raster(canvas, alpha=True)
        if each.dispose == _TO_BACKGROUND or (each.dispose == _TO_PREVIOUS and index == 0):
            region[:] = 0
        elif before is not None:
            canvas = before
    raise Undecodable("The PNG has fewer frames than it announces.")


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = len(SIGNATURE)
    while position + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        yield name, data[position + 8 : position + 8 + length]
        position += 12 + length


def _frames(data: bytes) -> Iterator[_Frame]:
    current: _Frame | None = None
    for name, body in _chunks(data):
        if name == b"fcTL":
            if current is not None:
                yield current
            if len(body) < 26:
                raise Undecodable("A frame of the PNG is not valid.")
            width, height, left, top, dispose, blend = struct.unpack_from(">4xIIII4xBB", body)
            current = _Frame(Size(width, height), left, top, dispose, blend, [])
        elif current is not None and name == b"IDAT":
            current.data.append(body)
        elif current is not None and name == b"fdAT":
            current.data.append(body[4:])
    if current is not None:
        yield current


def _region(canvas: Samples, frame: _Frame) -> Samples:
    bottom, right = frame.top + frame.size.height, frame.left + frame.size.width
    if not frame.size.width or not frame.size.height or bottom > canvas.shape[0] or right > canvas.shape[1]:
        raise Undecodable("A frame of the PNG lies outside its canvas.")
    return canvas[frame.top : bottom, frame.left : right]


def _pixels(frame: _Frame, head: bytes, shared: bytes) -> Samples:
    """RGBA of one frame."""
    header = struct.pack(">II", frame.size.width, frame.size.height) + head[8:]
    body = _chunk(b"IHDR", header) + shared + _chunk(b"IDAT", b"".join(frame.data)) + _chunk(b"IEND", b"")
    file = SIGNATURE + body
    inner = replace(probe_png(Window(file, file, len(file))), frames=1)
    raster = decode_page(file, inner)
    rgba = np.full((frame.size.height, frame.size.width, 4), 255, np.uint8)
    bands = raster.samples.shape[2]
    rgba[:, :, :3] = raster.samples[:, :, : 1 if bands == 1 else 3]
    if raster.alpha:
        rgba[:, :, 3] = raster.samples[:, :, 3]
    return rgba


def _draw(region: Samples, pixels: Samples, blend: int) -> None:
    if blend != _OVER:
        region[:] = pixels
        return
    above = pixels[:, :, 3:].astype(np.uint32)
    below = region[:, :, 3:].astype(np.uint32) * (255 - above)
    alpha = above * 255 + below
    mixed = pixels[:, :, :3] * (above * 255) + region[:, :, :3] * below
    region[:, :, :3] = np.where(alpha > 0, (mixed + alpha // 2) // np.maximum(alpha, 1), 0).astype(np.uint8)
    region[:, :, 3:] = ((alpha + 127) // 255).astype(np.uint8)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
