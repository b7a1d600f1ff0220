"""GIF (89a specification): canvas, frames, transparency of the first frame, trailer.

The size is the canvas, since the first frame is composed on it; a first frame that reaches beyond the canvas enlarges
it, as Pillow and libnsgif do. ``complete`` means that the blocks lead to the trailer, or that the file ends between two
blocks after a whole first frame (encoders that forget the trailer are common).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from gateway.errors import Undecodable
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

# Sub-blocks carry up to 255 bytes: 64 MiB of full ones.
_MAX_STEPS = 300_000


@dataclass(frozen=True, slots=True)
class FirstFrame:
    """Where the first frame lies on the canvas, whether it has a transparent colour, and where its data ends."""

    left: int
    top: int
    size: Size
    transparent: bool
    stop: int

    def canvas(self, declared: Size) -> Size:
        """The declared canvas, enlarged to hold the frame."""
        return Size(max(declared.width, self.left + self.size.width), max(declared.height, self.top + self.size.height))

    def covers(self, canvas: Size) -> bool:
        """Whether nothing of the canvas shows beside the frame."""
        return not self.left and not self.top and self.size == canvas


@dataclass(slots=True)
class _Walk:
    position: int
    steps: int = 0
    frames: int = 0
    transparent_index: bool = False
    first: FirstFrame | None = None


def probe_gif(window: Window) -> Probe:
    """Walk the blocks. Raises Undecodable, NeedMore."""
    try:
        width, height, packed = struct.unpack("<HHB", window.read(6, 5))
    except EndOfData:
        raise Undecodable("The GIF ends within its header.") from None
    if not width or not height:
        raise Undecodable("The GIF's canvas is empty.")
    walk = _Walk(13 + _table_bytes(packed))
    complete = _walk_blocks(window, walk, last_frame=None)
    canvas, first = Size(width, height), walk.first
    if first is None and complete:
        raise Undecodable("The GIF holds no picture.")
    if first is not None:
        canvas = first.canvas(canvas)
    return Probe(
        format=ImageFormat.GIF,
        raster=canvas,
        frames=max(1, walk.frames),
        colour=ColourModel.PALETTE,
        has_alpha=first is not None and (first.transparent or not first.covers(canvas)),
        complete=complete,
    )


def first_frame(data: bytes) -> FirstFrame:
    """Find the first frame of a whole file. Raises Undecodable."""
    if len(data) < 13:
        raise Undecodable("The GIF ends within its header.")
    walk = _Walk(13 + _table_bytes(data[10]))
    _walk_blocks(Window(data, data, len(data)), walk, last_frame=1)
    if walk.first is None or not walk.frames:
        raise Undecodable("The GIF holds no whole picture.")
    return walk.first


def _table_bytes(packed: int) -> int:
    return 3 << (packed & 7) + 1 if packed & 0x80 else 0


def _walk_blocks(window: Window, walk: _Walk, last_frame: int | None) -> bool:
    """Visit the blocks, up to ``last_frame`` if given; whether they end well."""
    while walk.frames != last_frame:
        if walk.position == window.byte_count:
            return walk.frames > 0
        try:
            introducer = window.read(walk.position, 1)[0]
            if introducer == 0x3B:
                return True
            if introducer == 0x21:
                _extension(window, walk)
            elif introducer == 0x2C:
                _image(window, walk)
            else:
                # Bytes that are no block, after at least one frame: decoders stop here too.
                return walk.frames > 0
        except EndOfData:
            return False
    return True


def _extension(window: Window, walk: _Walk) -> None:
    label = window.read(walk.position + 1, 1)[0]
    if label == 0xF9:
        size, packed = struct.unpack("BB", window.read(walk.position + 2, 2))
        walk.transparent_index = size >= 4 and bool(packed & 1)
    walk.position += 2
    _skip_sub_blocks(window, walk)


def _image(window: Window, walk: _Walk) -> None:
    left, top, width, height, packed = struct.unpack("<HHHHB", window.read(walk.position + 1, 9))
    if not width or not height:
        raise Undecodable("A frame of the GIF is empty.")
    walk.position += 10 + _table_bytes(packed) + 1
    is_first = walk.first is None
    if is_first:  # before its data: a frame that is cut off has a size all the same, and decoders make room for it
        walk.first = FirstFrame(left, top, Size(width, height), walk.transparent_index, window.byte_count)
    _skip_sub_blocks(window, walk)
    if is_first and walk.first is not None:
        walk.first = replace(walk.first, stop=walk.position)
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
