"""BMP (Microsoft, "Bitmap Header Types"): the DIB header. Run-length and embedded JPEG or PNG kinds are not accepted.

``complete`` means that the rows the header promises are there (the last row's padding may be missing).
"""

from __future__ import annotations

import struct

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

_CORE_HEADER, _INFO_HEADER, _V3_HEADER = 12, 40, 56
_RGB, _BITFIELDS, _ALPHA_BITFIELDS = 0, 3, 6
# The one signed height whose absolute value does not fit.
_NO_HEIGHT = -(2**31)


def probe_bmp(window: Window) -> Probe:
    """Read the headers. Raises Undecodable, UnsupportedFormat, NeedMore."""
    try:
        pixels_at, header_bytes = struct.unpack("<II", window.read(10, 8))
        if header_bytes < _INFO_HEADER:
            if header_bytes == _CORE_HEADER:
                raise UnsupportedFormat("BMP files with an OS/2 header are not accepted.")
            raise Undecodable("The BMP's header is not valid.")
        width, height, planes, bits, compression = struct.unpack("<iiHHI", window.read(18, 16))
        masked = compression in (_BITFIELDS, _ALPHA_BITFIELDS) and header_bytes >= _V3_HEADER
        alpha = masked and struct.unpack("<I", window.read(66, 4))[0] != 0
    except EndOfData:
        raise Undecodable("The BMP ends within its header.") from None
    if width <= 0 or height in (0, _NO_HEIGHT) or planes != 1 or bits not in (1, 4, 8, 16, 24, 32):
        raise Undecodable("The BMP's header is not valid.")
    if compression not in (_RGB, _BITFIELDS, _ALPHA_BITFIELDS):
        raise UnsupportedFormat("Compressed BMP files are not accepted.")
    rows, row_bytes = abs(height), (width * bits + 7) // 8
    stride = (row_bytes + 3) // 4 * 4
    return Probe(
        format=ImageFormat.BMP,
        raster=Size(width, rows),
        colour=ColourModel.PALETTE if bits <= 8 else ColourModel.RGB,
        has_alpha=alpha,
        complete=pixels_at + stride * (rows - 1) + row_bytes <= window.byte_count,
    )
