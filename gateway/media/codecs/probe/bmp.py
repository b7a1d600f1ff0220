"""BMP (Microsoft, "Bitmap Header Types"; OS/2's two headers): the DIB header, plain and run-length rows.

Embedded JPEG and PNG (kinds 4 and 5, meant for printers) are not accepted. ``complete`` means that the rows the header
promises are there (the last row's padding may be missing); run-length rows tell that only when they are decoded.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

FILE_HEADER_BYTES = 14
CORE_HEADER, OS2_SHORT_HEADER, INFO_HEADER = 12, 16, 40
_V3_HEADER = 56
RGB, RLE8, RLE4, _BITFIELDS, _ALPHA_BITFIELDS = 0, 1, 2, 3, 6
# A run takes two bytes at least and Python some 0.3 us; real files of this kind are icons and old screens.
_MAX_RLE_BYTES = 8 * 1024 * 1024
# The one signed height whose absolute value does not fit.
_NO_HEIGHT = -(2**31)


@dataclass(frozen=True, slots=True)
class DibHeader:
    """A DIB header. ``bottom_up`` is how rows are stored; ``colours`` what it says of its palette (0: all)."""

    byte_count: int
    size: Size
    bottom_up: bool
    bits: int
    compression: int
    colours: int
    alpha_mask: bool

    @property
    def palette_entry_bytes(self) -> int:
        return 3 if self.byte_count == CORE_HEADER else 4

    @property
    def palette_entries(self) -> int:
        return 0 if self.bits > 8 else min(self.colours or 2**self.bits, 2**self.bits)

    @property
    def row_bytes(self) -> int:
        return (self.size.width * self.bits + 7) // 8

    @property
    def stride(self) -> int:
        return (self.row_bytes + 3) // 4 * 4


def read_dib(window: Window, start: int, *, double_height: bool = False) -> DibHeader:
    """The DIB header at an offset; in icons the height counts the mask too. Raises Undecodable and EndOfData."""
    (header_bytes,) = struct.unpack("<I", window.read(start, 4))
    compression = colours = 0
    alpha = False
    if header_bytes == CORE_HEADER:
        width, height, planes, bits = struct.unpack("<HHHH", window.read(start + 4, 8))
    elif header_bytes >= OS2_SHORT_HEADER:
        width, height, planes, bits = struct.unpack("<iiHH", window.read(start + 4, 12))
        if header_bytes >= INFO_HEADER:
            compression, colours = struct.unpack("<I12xI", window.read(start + 16, 20))
        masked = compression in (_BITFIELDS, _ALPHA_BITFIELDS) and header_bytes >= _V3_HEADER
        alpha = masked and struct.unpack("<I", window.read(start + 52, 4))[0] != 0
    else:
        raise Undecodable("The BMP's header is not valid.")
    rows = abs(height) // 2 if double_height else abs(height)
    if width <= 0 or rows < 1 or height == _NO_HEIGHT or planes != 1 or bits not in (1, 4, 8, 16, 24, 32):
        raise Undecodable("The BMP's header is not valid.")
    return DibHeader(header_bytes, Size(width, rows), height > 0, bits, compression, colours, alpha)


def probe_bmp(window: Window) -> Probe:
    """Read the headers. Raises Undecodable, UnsupportedFormat, NeedMore."""
    try:
        (pixels_at,) = struct.unpack("<I", window.read(10, 4))
        header = read_dib(window, FILE_HEADER_BYTES)
    except EndOfData:
        raise Undecodable("The BMP ends within its header.") from None
    check_compression(header)
    end = pixels_at + header.stride * (header.size.height - 1) + header.row_bytes
    if header.compression in (RLE8, RLE4):
        if window.byte_count > _MAX_RLE_BYTES:
            raise UnsupportedFormat(f"Compressed BMP files of more than {_MAX_RLE_BYTES} bytes are not accepted.")
        end = pixels_at
    return Probe(
        format=ImageFormat.BMP,
        raster=header.size,
        colour=ColourModel.PALETTE if header.bits <= 8 else ColourModel.RGB,
        has_alpha=header.alpha_mask,
        complete=end <= window.byte_count,
    )


def check_compression(header: DibHeader) -> None:
    """Raises UnsupportedFormat for a kind of rows that is not decoded."""
    runs = header.compression in (RLE8, RLE4)
    if runs and header.bits == (8 if header.compression == RLE8 else 4) and header.bottom_up:
        return
    plain = header.compression == RGB or (header.compression in (_BITFIELDS, _ALPHA_BITFIELDS) and header.bits >= 16)
    if not plain:
        raise UnsupportedFormat(
            "This kind of BMP (an embedded JPEG or PNG, or an unknown compression) is not accepted."
        )
