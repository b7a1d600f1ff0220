"""WebP (RFC 9649): RIFF chunks, the bitstream's own size, animation, alpha, EXIF and XMP.

``complete`` compares RIFF's declared length with the file's and asks that every chunk fit. An animation's canvas is
its size; a still picture's bitstream must have the size of its canvas.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from gateway.errors import Undecodable
from gateway.media.codecs.probe.exif import orientation_of
from gateway.media.codecs.probe.icc import is_foreign
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

# An animation of an hour at 30 frames a second.
_MAX_CHUNKS = 131_072
_MAX_PROFILE_BYTES = 4 * 1024 * 1024
_ALPHA_FLAG, _ANIMATION_FLAG = 0x10, 0x02


@dataclass(slots=True)
class _Found:
    canvas: Size | None = None
    flags: int = 0
    bitstream: Size | None = None
    alpha: bool = False
    frames: int = 0
    exif: bytes | None = None
    xmp: bytes | None = None
    profile: bytes | None = None


def probe_webp(window: Window) -> Probe:
    """Read the chunks. Raises Undecodable, NeedMore."""
    found = _Found()
    try:
        (declared,) = struct.unpack("<I", window.read(4, 4))
        complete = _walk(window, min(window.byte_count, declared + 8), found)
    except EndOfData:
        raise Undecodable("The WebP ends within its header.") from None
    animated = bool(found.flags & _ANIMATION_FLAG)
    size = found.canvas or found.bitstream
    if size is None or not size.width or not size.height:
        raise Undecodable("The WebP's header is not valid.")
    if found.bitstream is not None and not animated and found.bitstream != size:
        raise Undecodable("The WebP's picture does not have the size of its canvas.")
    if complete and not found.frames and found.bitstream is None:
        raise Undecodable("The WebP holds no picture.")
    return Probe(
        format=ImageFormat.WEBP,
        raster=size,
        orientation=orientation_of(found.exif, found.xmp),
        frames=max(1, found.frames) if animated else 1,
        colour=ColourModel.RGB,
        has_alpha=found.alpha or bool(found.flags & _ALPHA_FLAG),
        complete=complete and declared + 8 <= window.byte_count,
        foreign_profile=is_foreign(found.profile),
    )


def webp_profile(data: bytes) -> bytes | None:
    """The ICC profile of a whole file."""
    found = _Found()
    try:
        _walk(Window(data, data, len(data)), len(data), found)
    except (EndOfData, Undecodable):
        return None
    return found.profile


def _walk(window: Window, stop: int, found: _Found) -> bool:
    """Visit the chunks up to ``stop``; whether all of them fit."""
    position = 12
    for _ in range(_MAX_CHUNKS):
        if position + 8 > stop:
            return position > 12
        name, length = struct.unpack("<4sI", window.read(position, 8))
        _keep(window, name, position + 8, length, found)
        position += 8 + length
        if position > stop:
            return False
        position += length & 1
    raise Undecodable("The WebP has too many chunks.")


def _keep(window: Window, name: bytes, start: int, length: int, found: _Found) -> None:
    if name == b"VP8X" and found.canvas is None:
        flags, width, height = struct.unpack("<B3x3s3s", window.read(start, 10))
        found.flags = flags
        found.canvas = Size(int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1)
    elif name == b"VP8 " and found.bitstream is None:
        found.bitstream = _lossy_size(window.read(start, 10))
    elif name == b"VP8L" and found.bitstream is None:
        found.bitstream, found.alpha = _lossless_size(window.read(start, 5))
    elif name == b"ANMF":
        found.frames += 1
    elif name == b"EXIF" and found.exif is None and start + length <= window.byte_count:
        found.exif = window.read(start, length)
    elif name == b"ICCP" and found.profile is None and start + length <= window.byte_count:
        found.profile = window.read(start, min(length, _MAX_PROFILE_BYTES))
    elif name == b"XMP " and found.xmp is None and start + length <= window.byte_count:
        found.xmp = window.read(start, length)


def _lossy_size(header: bytes) -> Size:
    """RFC 6386 §9.1: a key frame's tag, start code and two 14-bit sides."""
    if header[0] & 1 or header[3:6] != b"\x9d\x01\x2a":
        raise Undecodable("The WebP's picture header is not valid.")
    width, height = struct.unpack_from("<HH", header, 6)
    return Size(width & 0x3FFF, height & 0x3FFF)


def _lossless_size(header: bytes) -> tuple[Size, bool]:
    """RFC 9649 §3.4: signature 0x2f, then 14 + 14 bits of side less one, one alpha bit, three version bits."""
    bits = int.from_bytes(header[1:5], "little")
    if header[0] != 0x2F or bits >> 29:
        raise Undecodable("The WebP's picture header is not valid.")
    return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1), bool(bits >> 28 & 1)


def is_lossless(data: bytes) -> bool:
    """Whether the first picture of a WebP is coded without loss. Looks at no more than the first 64 KiB."""
    head = data[12:65_536]
    lossless, lossy = head.find(b"VP8L"), head.find(b"VP8 ")
    return lossless >= 0 and (lossy < 0 or lossless < lossy)
