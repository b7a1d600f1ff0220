"""ICO (Microsoft, "Icons"): a directory of pictures, each a PNG or a BMP without its file header.

Which is shown: the largest, and of equal ones the one with most colours, as Pillow 13 chooses. Its true size is that of
the picture itself; the directory's one byte a side is only believed for choosing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.bmp import RGB, DibHeader, read_dib
from gateway.media.codecs.probe.png import SIGNATURE, probe_png
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe

_MAX_ENTRIES = 1_024


@dataclass(frozen=True, slots=True)
class IconEntry:
    """The chosen picture. ``header`` is None where it is a PNG."""

    start: int
    byte_count: int
    header: DibHeader | None


def probe_ico(window: Window) -> Probe:
    """Read the directory and the chosen picture's header. Raises Undecodable, UnsupportedFormat, NeedMore."""
    try:
        entry = _choose(window)
        if entry.header is None:
            file = window.read(entry.start, min(entry.byte_count, window.byte_count - entry.start))
            inner = probe_png(Window(file, file, len(file)))
            return replace(inner, format=ImageFormat.ICO, frames=1, pages=())
    except (EndOfData, struct.error):
        raise Undecodable("The icon ends within its header.") from None
    header = entry.header
    return Probe(
        format=ImageFormat.ICO,
        raster=header.size,
        colour=ColourModel.PALETTE if header.bits <= 8 else ColourModel.RGB,
        has_alpha=True,
        complete=entry.start + pixel_offset(header) + header.stride * header.size.height <= window.byte_count,
    )


def chosen_entry(data: bytes) -> IconEntry:
    """The picture that is shown of a whole file. Raises Undecodable, UnsupportedFormat."""
    try:
        return _choose(Window(data, data, len(data)))
    except (EndOfData, struct.error):
        raise Undecodable("The icon ends within its header.") from None


def pixel_offset(header: DibHeader) -> int:
    """Bytes of header and palette before the rows."""
    return header.byte_count + header.palette_entries * header.palette_entry_bytes


def _choose(window: Window) -> IconEntry:
    (count,) = struct.unpack("<H", window.read(4, 2))
    if not 0 < count <= _MAX_ENTRIES:
        raise Undecodable("The icon holds no picture.")
    directory = window.read(6, 16 * count)
    entries = [struct.unpack_from("<BB4xHII", directory, 16 * index) for index in range(count)]
    _, _, _, byte_count, start = max(entries, key=lambda entry: ((entry[0] or 256) * (entry[1] or 256), entry[2]))
    if window.read(start, 8) == SIGNATURE:
        return IconEntry(start, byte_count, None)
    header = read_dib(window, start, double_height=True)
    if header.compression != RGB or header.bits == 16:
        raise UnsupportedFormat("Icons with compressed or masked pictures are not accepted.")
    return IconEntry(start, byte_count, header)
