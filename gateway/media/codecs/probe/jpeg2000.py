"""JPEG 2000 (ISO/IEC 15444-1): a JP2 file or a bare code stream; the SIZ segment and the boxes of colour.

Orientation is not read: the standard has no place for it, and engines that load with Pillow 13 read none. ``complete``
means that the code stream's end mark is there. Sampled-down components, signed samples and more than 16 bits are not
accepted, as no camera, archive or map service writes pictures in them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.boxes import boxes, content
from gateway.media.codecs.probe.icc import is_foreign
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

_SIGNATURE = b"\0\0\0\x0cjP  \r\n\x87\n"
# T.800 allows 65,535 tiles; each costs the decoder a structure before a byte of it is read.
_MAX_TILES = 4_096
_MAX_PROFILE_BYTES = 4 * 1024 * 1024
_SRGB, _GREY, _SYCC, _CMYK = 16, 17, 18, 12
_KNOWN_SPACES = frozenset({_SRGB, _GREY, _SYCC, _CMYK})


@dataclass(slots=True)
class _Header:
    """What the boxes before the code stream say. ``stream_start`` is where SOC stands."""

    stream_start: int = 0
    space: int | None = None
    profile: bytes | None = None
    palette_columns: int = 0
    alpha: bool = False
    defined: bool = False


@dataclass(frozen=True, slots=True)
class _Stream:
    size: Size
    components: int
    bits: int


def probe_jpeg2000(window: Window) -> Probe:
    """Read boxes and SIZ. Raises Undecodable, UnsupportedFormat, NeedMore."""
    try:
        header = _read_boxes(window) if window.read(0, 12) == _SIGNATURE else _Header()
        stream = _read_stream(window, header.stream_start)
        tail = window.read(max(0, window.byte_count - 2), 2)
    except (EndOfData, struct.error, IndexError):
        raise Undecodable("The JPEG 2000 file ends within its header.") from None
    bands = header.palette_columns or stream.components
    if bands not in (1, 2, 3, 4) or (header.space is not None and header.space not in _KNOWN_SPACES):
        raise UnsupportedFormat("JPEG 2000 files in this colour space are not accepted.")
    cmyk = header.space == _CMYK
    return Probe(
        format=ImageFormat.JPEG2000,
        raster=stream.size,
        bits_per_sample=8 if header.palette_columns else stream.bits,
        colour=ColourModel.CMYK if cmyk else ColourModel.GREY if bands <= 2 else ColourModel.RGB,
        has_alpha=not cmyk and (header.alpha if header.defined else bands in (2, 4)),
        complete=tail == b"\xff\xd9" or _ends_within(window, header.stream_start),
        foreign_profile=is_foreign(header.profile),
    )


def jpeg2000_profile(data: bytes) -> bytes | None:
    """The ICC profile of a whole file."""
    window = Window(data, data, len(data))
    try:
        return _read_boxes(window).profile if data.startswith(_SIGNATURE) else None
    except (EndOfData, struct.error, IndexError, Undecodable):
        return None


def _read_boxes(window: Window) -> _Header:
    header = _Header()
    for box in boxes(window, 0, window.byte_count):
        if box.kind == b"jp2h":
            for inner in boxes(window, box.start, box.stop):
                _keep(header, inner.kind, content(window, inner, _MAX_PROFILE_BYTES))
        elif box.kind == b"jp2c":
            header.stream_start = box.start
            return header
    raise Undecodable("The JPEG 2000 file holds no picture.")


def _keep(header: _Header, kind: bytes, data: bytes) -> None:
    if kind == b"colr" and header.space is None and header.profile is None:
        if data[0] == 1:
            (header.space,) = struct.unpack_from(">3xI", data)
        elif data[0] in (2, 3):
            header.profile = data[3:]
    elif kind == b"pclr":
        header.palette_columns = data[2]
    elif kind == b"cdef":
        (count,) = struct.unpack_from(">H", data)
        kinds = [struct.unpack_from(">2xH2x", data, 2 + 6 * index)[0] for index in range(min(count, 64))]
        header.defined, header.alpha = True, any(each in (1, 2) for each in kinds)


def _read_stream(window: Window, start: int) -> _Stream:
    """T.800 §A.5.1. Raises EndOfData."""
    mark, _, right, bottom, left, top, tile_width, tile_height, tile_left, tile_top, components = struct.unpack(
        ">4sH2x8IH", window.read(start, 42)
    )
    if mark != b"\xff\x4f\xff\x51" or right <= left or bottom <= top or not tile_width or not tile_height:
        raise Undecodable("The JPEG 2000 header is not valid.")
    if not 0 < components <= 4:
        raise UnsupportedFormat("JPEG 2000 files of more than four components are not accepted.")
    fields = [struct.unpack_from("BBB", window.read(start + 42, 3 * components), 3 * at) for at in range(components)]
    if any(across != 1 or down != 1 for _, across, down in fields):
        raise UnsupportedFormat("JPEG 2000 files with components of different sizes are not accepted.")
    bits = max((depth & 0x7F) + 1 for depth, _, _ in fields)
    if bits > 16 or any(depth & 0x80 for depth, _, _ in fields):
        raise UnsupportedFormat("JPEG 2000 files with other than unsigned samples of up to 16 bits are not accepted.")
    across = -(-(right - min(tile_left, right)) // tile_width)
    down = -(-(bottom - min(tile_top, bottom)) // tile_height)
    if across * down > _MAX_TILES:
        raise UnsupportedFormat(f"JPEG 2000 files of more than {_MAX_TILES} tiles are not accepted.")
    return _Stream(Size(right - left, bottom - top), components, bits)


def _ends_within(window: Window, start: int) -> bool:
    """Bytes may follow the end mark, as boxes do."""
    return window.tail.rfind(b"\xff\xd9", max(0, start - window.tail_start)) >= 0
