"""PNG (W3C PNG third edition): a walk over the chunks, so that nothing about the file rests on a search for words.

``frames`` is what acTL announces (APNG); what is rendered of such a file is its default image. ``complete`` means that
the chunks lead to IEND without leaving the file.
"""

from __future__ import annotations

import struct
import zlib

from gateway.errors import Undecodable
from gateway.media.codecs.probe.exif import orientation_of
from gateway.media.codecs.probe.icc import is_foreign
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# 64 MiB in IDAT chunks of 512 bytes; encoders write 8 KiB and more.
_MAX_CHUNKS = 131_072
_MAX_SIDE = 2**31 - 1
# colour type -> (colour, alpha, allowed bit depths): PNG §11.2.1, table 12
_COLOUR_TYPES = {
    0: (ColourModel.GREY, False, (1, 2, 4, 8, 16)),
    2: (ColourModel.RGB, False, (8, 16)),
    3: (ColourModel.PALETTE, False, (1, 2, 4, 8)),
    4: (ColourModel.GREY, True, (8, 16)),
    6: (ColourModel.RGB, True, (8, 16)),
}
_BANDS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# Deflate spends at least two bits on 258 bytes (RFC 1951 §3.2.5): 1032 to 1. Less data cannot fill the picture.
_MAX_DEFLATE_RATIO = 1_032
_MAX_PROFILE_BYTES = 4 * 1024 * 1024
_XMP_KEYWORD = b"XML:com.adobe.xmp\0"


def probe_png(window: Window) -> Probe:
    """Read IHDR and walk the chunks. Raises Undecodable, NeedMore."""
    try:
        length, name, width, height, bits, colour_type = struct.unpack(">I4sIIBB", window.read(8, 18))
    except EndOfData:
        raise Undecodable("The PNG ends within its header.") from None
    if name != b"IHDR" or length != 13 or not 0 < width <= _MAX_SIDE or not 0 < height <= _MAX_SIDE:
        raise Undecodable("The PNG's header is not valid.")
    colour, alpha, depths = _COLOUR_TYPES.get(colour_type, (ColourModel.RGB, False, ()))
    if bits not in depths:
        raise Undecodable("The PNG's header is not valid.")
    chunks = _Chunks(window)
    complete = chunks.walk()
    if complete and chunks.pixel_bytes * _MAX_DEFLATE_RATIO < (width * _BANDS[colour_type] * bits + 7) // 8 * height:
        raise Undecodable("The PNG has far less pixel data than its header needs.")
    return Probe(
        format=ImageFormat.PNG,
        raster=Size(width, height),
        orientation=orientation_of(chunks.exif, chunks.xmp),
        frames=max(1, chunks.frames),
        bits_per_sample=bits,
        colour=colour,
        has_alpha=alpha or chunks.transparency,
        complete=complete,
        foreign_profile=is_foreign(_inflated(chunks.profile)),
    )


def png_profile(data: bytes) -> bytes | None:
    """The ICC profile of a whole file."""
    chunks = _Chunks(Window(data, data, len(data)))
    try:
        chunks.walk()
    except Undecodable:
        return None
    return _inflated(chunks.profile)


def _inflated(chunk: bytes | None) -> bytes | None:
    """What iCCP holds (PNG §11.3.2.3): a name, a zero, the method, a deflated profile."""
    if chunk is None:
        return None
    try:
        return zlib.decompressobj().decompress(chunk[chunk.index(b"\0") + 2 :], _MAX_PROFILE_BYTES)
    except (ValueError, zlib.error):
        return None


class _Chunks:
    """The few facts that stand in chunks other than IHDR."""

    __slots__ = ("_window", "exif", "frames", "pixel_bytes", "profile", "transparency", "xmp")

    def __init__(self, window: Window) -> None:
        self._window = window
        self.exif: bytes | None = None
        self.xmp: bytes | None = None
        self.profile: bytes | None = None
        self.frames = 1
        self.transparency = False
        self.pixel_bytes = 0

    def walk(self) -> bool:
        """Visit every chunk; whether IEND was reached inside the file."""
        position = 8
        try:
            for _ in range(_MAX_CHUNKS):
                length, name = struct.unpack(">I4s", self._window.read(position, 8))
                if name == b"IEND":
                    self._window.read(position, 12)
                    return True
                self._keep(name, position + 8, length)
                position += 12 + length
        except EndOfData:
            return False
        raise Undecodable("The PNG has too many chunks.")

    def _keep(self, name: bytes, start: int, length: int) -> None:
        if name == b"IDAT":
            self.pixel_bytes += length
        elif name == b"tRNS":
            self.transparency = True
        elif name == b"acTL" and not self.pixel_bytes and length >= 4:
            (self.frames,) = struct.unpack(">I", self._window.read(start, 4))
        elif name == b"eXIf" and self.exif is None:
            self.exif = self._window.read(start, length)
        elif name == b"iCCP" and self.profile is None:
            self.profile = self._window.read(start, min(length, _MAX_PROFILE_BYTES))
        elif name == b"iTXt" and self.xmp is None and self._names_xmp(start, length):
            self.xmp = self._window.read(start, length)

    def _names_xmp(self, start: int, length: int) -> bool:
        return length > len(_XMP_KEYWORD) and self._window.read(start, len(_XMP_KEYWORD)) == _XMP_KEYWORD
