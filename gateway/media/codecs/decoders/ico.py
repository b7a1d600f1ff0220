"""Icons: the chosen picture, a PNG by libvips or a BMP with its mask of one bit a pixel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gateway.errors import Undecodable
from gateway.media.codecs.decoders.bmp import decode_dib
from gateway.media.codecs.decoders.raster import Raster, Samples
from gateway.media.codecs.decoders.vips import decode_page
from gateway.media.codecs.probe.bmp import DibHeader
from gateway.media.codecs.probe.ico import chosen_entry, pixel_offset
from gateway.types import ImageFormat, Probe


def decode_ico(data: bytes, probe: Probe) -> Raster:
    """Decode the largest picture. Raises Undecodable, UnsupportedFormat."""
    entry = chosen_entry(data)
    if entry.header is None:
        file = data[entry.start : entry.start + entry.byte_count]
        return decode_page(file, replace(probe, format=ImageFormat.PNG))
    return _with_mask(data[entry.start :], entry.header)


def _with_mask(data: bytes, header: DibHeader) -> Raster:
    """Pictures of 32 bits carry their transparency unless all of it is zero, which old programs leave."""
    size, at = header.size, pixel_offset(header)
    samples = np.empty((size.height, size.width, 4), np.uint8)
    samples[:, :, :3] = decode_dib(data, header)[:, :, :3]
    rows_end = at + header.stride * size.height
    if header.bits == 32:
        stored = np.frombuffer(data[at:rows_end], np.uint8)
        if len(stored) != header.stride * size.height:
            raise Undecodable("The icon's data is cut or damaged.")
        alpha = stored.reshape(size.height, size.width, 4)[:, :, 3]
        if alpha.any():
            samples[:, :, 3] = alpha[::-1] if header.bottom_up else alpha
            return Raster(samples, alpha=True)
    samples[:, :, 3] = _opaque(data[rows_end:], header)
    return Raster(samples, alpha=True)


def _opaque(mask: bytes, header: DibHeader) -> Samples:
    """255 where the mask shows the picture. A mask that is missing hides nothing."""
    size = header.size
    stride = (size.width + 31) // 32 * 4
    if len(mask) < stride * size.height:
        return np.full((size.height, size.width), 255, np.uint8)
    rows = np.frombuffer(mask[: stride * size.height], np.uint8).reshape(size.height, stride)
    hidden = np.unpackbits(rows, axis=1)[:, : size.width]
    shown = (255 * (1 - hidden)).astype(np.uint8)
    return np.ascontiguousarray(shown[::-1] if header.bottom_up else shown)
