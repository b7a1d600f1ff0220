"""PNG by the Rust decoder of kornia-rs: memory-safe, and half the CPU of libpng and libspng (9 ms for 3 MP of screen).

Only what is plain goes there: eight bits, grey, RGB or RGBA, one frame, not interlaced, no transparent colour. Opaque
palettes go to imagecodecs' libpng, which expands them in half the time of libvips. All else, and whatever either
refuses, is read by libvips, which so decides alone what is damaged and how that is told.
"""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import Any

import imagecodecs
import kornia_rs
import numpy as np
from isal import isal_zlib

from gateway.media.codecs.decoders.raster import Raster
from gateway.media.codecs.decoders.vips import decode_page
from gateway.types import ColourModel, Probe

# The end of IHDR: depth, colour type, compression, filter, interlace (PNG §11.2.2).
_HEADER = slice(24, 29)
_PLAIN = MappingProxyType({bytes((8, kind, 0, 0, 0)): mode for kind, mode in ((0, "mono"), (2, "rgb"), (6, "rgba"))})
_BANDS = MappingProxyType({"mono": 1, "rgb": 3, "rgba": 4})
# What the decoder needs beside the pixels. Rust ends the process where an allocation fails, so it is tried before.
_ROOM_BYTES = 16 * 1024 * 1024
_PALETTE_TYPE = 3


def holds_together(data: bytes) -> bool:
    """Whether every chunk a decoder needs is what was written, by its checksum (PNG §5.3), and a palette is there.

    Asked of files whose chunks lead to IEND, decoded or not: those that are passed as they are meet no decoder of ours.
    Costs 0.04 ms a megabyte. Chunks that a decoder may skip are not looked at, so bad ones cost nobody a picture.
    """
    position, palette = 8, data[25] != _PALETTE_TYPE
    view = memoryview(data)
    while True:
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 8 + length
        if end + 4 > len(data):  # IEND with a length of its own
            return False
        if not name[0] & 0x20:  # an upper-case first letter: critical
            (wanted,) = struct.unpack_from(">I", data, end)
            if isal_zlib.crc32(view[position + 4 : end]) != wanted:
                return False
        if name == b"IEND":
            return palette
        palette = palette or name == b"PLTE"
        position = end + 4


def decode_png(data: bytes, probe: Probe) -> Raster:
    """The picture, of an animation the first frame. Raises Undecodable, UnsupportedFormat, MemoryError."""
    mode = _PLAIN.get(data[_HEADER])
    if probe.frames == 1 and mode is not None and probe.has_alpha == (mode == "rgba"):
        samples = _plain(data, probe, mode)
    elif probe.frames == 1 and probe.colour is ColourModel.PALETTE and not probe.has_alpha and not data[28]:
        samples, mode = _palette(data, probe), "rgb"
    else:
        samples = None
    if samples is None:
        return decode_page(data, probe)
    return Raster(samples, alpha=mode == "rgba", grey=mode == "mono")


def _plain(data: bytes, probe: Probe, mode: str) -> Any:
    height, width = probe.raster.height, probe.raster.width
    np.empty(height * width * _BANDS[mode] + len(data) + _ROOM_BYTES, np.uint8)
    try:
        return kornia_rs.io.decode_image_png_u8(data, (height, width), mode)
    except Exception:  # noqa: BLE001 - it has no type of its own; libvips says what is wrong
        return None


def _palette(data: bytes, probe: Probe) -> Any:
    try:
        samples = imagecodecs.png_decode(data)
    except (RuntimeError, ValueError, TypeError):
        return None
    return samples if samples.shape == (probe.raster.height, probe.raster.width, 3) else None
