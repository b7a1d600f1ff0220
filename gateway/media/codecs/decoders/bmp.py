"""BMP and the BMP inside icons: plain rows by imagecodecs, run-length rows and OS/2 headers brought into its form here.

Pixels that run-length rows leave out have palette colour 0, as in Pillow.
"""

from __future__ import annotations

import struct

import imagecodecs
import numpy as np

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.calls import call
from gateway.media.codecs.decoders.raster import Raster, Samples, raster_from
from gateway.media.codecs.probe.bmp import (
    FILE_HEADER_BYTES,
    INFO_HEADER,
    RGB,
    RLE4,
    RLE8,
    DibHeader,
    check_compression,
    read_dib,
)
from gateway.media.codecs.probe.ico import pixel_offset
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import Probe


def decode_bmp(data: bytes, probe: Probe, *, salvage: bool = False) -> Raster:
    """Any BMP the probe accepted; a cut one gets the rows it lacks in the background of zeros. Raises Undecodable."""
    header = _header(data)
    (pixels_at,) = struct.unpack_from("<I", data, 10)
    if pixels_at > len(data):  # nothing of the picture is there, and what would have to be made up has no bound
        raise Undecodable("The BMP's pixels begin beyond its end.")
    if header.compression in (RLE8, RLE4):
        return decode_palette(_expanded(data[pixels_at:], header), _palette(data, header), header)
    if header.byte_count < INFO_HEADER:
        data, pixels_at = _with_info_header(data[pixels_at:], _palette(data, header), header)
    if salvage:
        data += bytes(max(0, pixels_at + header.stride * header.size.height - len(data)))
    return raster_from(call("BMP", imagecodecs.bmp_decode, data), probe.raster)


def decode_dib(data: bytes, header: DibHeader) -> Samples:
    """The colours (RGB) of an icon's picture without its mask; ``data`` from its header on. Raises Undecodable."""
    rows = data[pixel_offset(header) : pixel_offset(header) + header.stride * header.size.height]
    file, _ = _with_info_header(rows, _palette(data, header, 0), header)
    samples = raster_from(call("BMP", imagecodecs.bmp_decode, file), header.size).samples
    return samples if samples.shape[2] >= 3 else np.repeat(samples[:, :, :1], 3, axis=2)


def decode_palette(indices: Samples, palette: Samples, header: DibHeader) -> Raster:
    """Colours of palette indices, rows from the bottom up as stored."""
    colours = np.zeros((256, 3), np.uint8)
    colours[: len(palette)] = palette
    return Raster(np.ascontiguousarray(colours[indices[::-1]] if header.bottom_up else colours[indices]))


def _header(data: bytes) -> DibHeader:
    try:
        header = read_dib(Window(data, data, len(data)), FILE_HEADER_BYTES)
    except EndOfData:
        raise Undecodable("The BMP ends within its header.") from None
    check_compression(header)
    return header


def _palette(data: bytes, header: DibHeader, start: int = FILE_HEADER_BYTES) -> Samples:
    """RGB of the palette's entries, as many as are there."""
    width = header.palette_entry_bytes
    at = start + header.byte_count
    raw = data[at : at + header.palette_entries * width]
    entries = np.frombuffer(raw[: len(raw) // width * width], np.uint8).reshape(-1, width)
    return np.ascontiguousarray(entries[:, 2::-1])


def _with_info_header(rows: bytes, palette: Samples, header: DibHeader) -> tuple[bytes, int]:
    """A BMP of the usual kind with the same rows, and where they stand in it."""
    entries = np.zeros((2**header.bits if header.bits <= 8 else 0, 4), np.uint8)
    if header.bits <= 8:
        entries[: len(palette), :3] = palette[:, ::-1]
    pixels_at = FILE_HEADER_BYTES + INFO_HEADER + entries.size
    height = header.size.height if header.bottom_up else -header.size.height
    info = struct.pack("<IiiHHIIiiII", INFO_HEADER, header.size.width, height, 1, header.bits, RGB, 0, 0, 0, 0, 0)
    head = b"BM" + struct.pack("<IHHI", pixels_at + len(rows), 0, 0, pixels_at)
    return head + info + entries.tobytes() + rows, pixels_at


def _expanded(runs: bytes, header: DibHeader) -> Samples:
    """Run-length rows as palette indices (Microsoft, "Bitmap Compression"). Bounded by the runs and the raster."""
    size = header.size
    indices = np.zeros((size.height, size.width), np.uint8)
    position = row = column = 0
    while position + 2 <= len(runs) and row < size.height:
        count, value = runs[position], runs[position + 1]
        position += 2
        if count:
            _put(indices, row, column, _run(count, value, header.bits))
            column += count
        elif value == 0:
            row, column = row + 1, 0
        elif value == 1:
            return indices
        elif value == 2:
            if position + 2 > len(runs):
                break
            column, row = column + runs[position], row + runs[position + 1]
            position += 2
        else:
            stored = value if header.bits == 8 else (value + 1) // 2
            _put(indices, row, column, _literal(runs[position : position + stored], value, header.bits))
            column += value
            position += stored + (stored & 1)
    if row < size.height - 1:
        raise Undecodable("The BMP's data is cut or damaged.")
    return indices


def _put(indices: Samples, row: int, column: int, values: Samples) -> None:
    room = indices[row, column : column + len(values)]
    room[:] = values[: len(room)]


def _run(count: int, value: int, bits: int) -> Samples:
    if bits == 8:
        return np.full(count, value, np.uint8)
    return np.resize(np.array((value >> 4, value & 15), np.uint8), count)


def _literal(stored: bytes, count: int, bits: int) -> Samples:
    values = np.frombuffer(stored, np.uint8)
    if bits == 4:
        values = np.stack((values >> 4, values & 15), axis=1).reshape(-1)
    return values[:count]
