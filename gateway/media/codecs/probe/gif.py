"""GIF (89a specification): canvas, frames, transparency of the first frame, trailer.

The size is the canvas, since the first frame is composed on it. ``complete`` means that the blocks lead to the trailer,
or that the file ends between two blocks after a whole first frame (encoders that forget the trailer are common).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from gateway.errors import Undecodable
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

# Sub-blocks carry up to 255 bytes: 64 MiB of full ones.
_MAX_STEPS = 300_000


@dataclass(slots=True)
class _Walk:
    position: int
    steps: int = 0
    frames: int = 0
    transparent_index: bool = False
    first_covers: bool = True
    first_transparent: bool = False


def probe_gif(window: Window) -> Probe:
    """Walk the blocks. Raises Undecodable, NeedMore."""
    try:
        width, height, packed = struct.unpack("<HHB", window.read(6, 5))
    except EndOfData:
        raise Undecodable("The GIF ends within its header.") from None
    if not width or not height:
        raise Undecodable("The GIF's canvas is empty.")
    walk = _Walk(13 + _table_bytes(packed))
    complete = _walk_blocks(window, walk, Size(width, height))
    if complete and not walk.frames:
        raise Undecodable("The GIF holds no picture.")
    return Probe(
        format=ImageFormat.GIF,
        raster=Size(width, height),
        frames=max(1, walk.frames),
        colour=ColourModel.PALETTE,
        has_alpha=walk.first_transparent or not walk.first_covers,
        complete=complete,
    )


def _table_bytes(packed: int) -> int:
    return 3 << (packed & 7) + 1 if packed & 0x80 else 0


def _walk_blocks(window: Window, walk: _Walk, canvas: Size) -> bool:
    while True:
        if walk.position == window.byte_count:
            return walk.frames > 0
        try:
            introducer = window.read(walk.position, 1)[0]
            if introducer == 0x3B:
                return True
            if introducer == 0x21:
                _extension(window, walk)
            elif introducer == 0x2C:
                _image(window, walk, canvas)
            else:
                # Bytes that are no block, after at least one frame: decoders stop here too.
                return walk.frames > 0
        except EndOfData:
            return False


def _extension(window: Window, walk: _Walk) -> None:
    label = window.read(walk.position + 1, 1)[0]
    if label == 0xF9:
        size, packed = struct.unpack("BB", window.read(walk.position + 2, 2))
        walk.transparent_index = size >= 4 and bool(packed & 1)
    walk.position += 2
    _skip_sub_blocks(window, walk)


def _image(window: Window, walk: _Walk, canvas: Size) -> None:
    left, top, width, height, packed = struct.unpack("<HHHHB", window.read(walk.position + 1, 9))
    walk.position += 10 + _table_bytes(packed) + 1
    _skip_sub_blocks(window, walk)
    if not walk.frames:
        walk.first_covers = not left and not top and width >= canvas.width and height >= canvas.height
        walk.first_transparent = walk.transparent_index
    walk.frames += 1
    walk.transparent_index = False


def _skip_sub_blocks(window: Window, walk: _Walk) -> None:
    while True:
        length = window.read(walk.position, 1)[0]
        walk.position += 1 + length
        walk.steps += 1
        if not length:
            return
        if walk.steps > _MAX_STEPS:
            raise Undecodable("The GIF has too many blocks.")
