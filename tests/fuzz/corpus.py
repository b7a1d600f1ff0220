"""One small file of every kind that people send, made here at run time: the seeds that fuzzing mutates.

Small, because a mutation counts for more in a small file and an input then costs a millisecond.
"""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Callable, Mapping

import imagecodecs
import numpy as np
from PIL import Image

from gateway.media.codecs.decoders.vips import load_vips
from tests.media.codecs import samples
from tests.media.video import clips

_pyvips = load_vips()  # tamed as in a worker: reading what this writes comes later in the same process

_SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8"/></svg>'
_SHORT = clips.Shape(frames=6, width=48, height=32, group=3)
# What a seed's name begins with when it is not an image.
VIDEO, SOUND = "video-", "sound-"


def corpus() -> Mapping[str, bytes]:
    """Name to file, always in the same order."""
    return {name: make() for name, make in _MAKERS.items()}


def _detailed(width: int = 48, height: int = 40, bands: int = 3) -> samples.Pixels:
    rows, columns = np.indices((height, width), dtype=np.uint32)
    noise = ((rows * 2654435761 + columns * 40503) >> 7) % 61
    shown = [(rows * (3 + band) + columns * 2 + noise) % 256 for band in range(bands)]
    return np.ascontiguousarray(np.stack(shown, axis=2).astype(np.uint8))


def _vips(suffix: str, pixels: samples.Pixels | None = None, **options: object) -> bytes:
    shown = _detailed() if pixels is None else pixels
    image = _pyvips.Image.new_from_memory(shown.tobytes(), shown.shape[1], shown.shape[0], shown.shape[2], "uchar")
    return bytes(image.copy(interpretation="srgb").write_to_buffer(suffix, **options))


def _vips_pages(suffix: str, count: int = 3, **options: object) -> bytes:
    pages = np.concatenate([np.roll(_detailed(32, 24), page * 5, axis=1) for page in range(count)])
    image = (
        _pyvips.Image.new_from_memory(pages.tobytes(), 32, 24 * count, 3, "uchar").copy(interpretation="srgb").copy()
    )
    image.set_type(_pyvips.GValue.gint_type, "page-height", 24)
    return bytes(image.write_to_buffer(suffix, **options))


def _apng() -> bytes:
    buffer = io.BytesIO()
    frames = [Image.fromarray(np.roll(_detailed(32, 24), step, axis=0)) for step in (0, 4, 9)]
    frames[0].save(buffer, "PNG", save_all=True, append_images=frames[1:], default_image=True)
    return buffer.getvalue()


def _jpeg_with_everything() -> bytes:
    """EXIF that turns, XMP, a colour profile, a comment, stray bytes behind the end."""
    file = samples.with_segments(
        samples.jpeg(_detailed()),
        samples.segment(0xE1, b"Exif\0\0" + samples.exif(6)),
        samples.segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>"),
        samples.segment(0xE2, b"ICC_PROFILE\0\1\1" + bytes(128)),
        samples.segment(0xFE, b"a comment"),
    )
    return file + b"\0\0stray"


def _png_with_everything() -> bytes:
    before = samples.chunk(b"gAMA", (45_455).to_bytes(4, "big")) + samples.chunk(b"tEXt", b"Title\0x")
    before += samples.chunk(b"eXIf", samples.exif(8)) + samples.chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(128)))
    return samples.png(_detailed(), before=before)


def _gif_animation() -> bytes:
    frames = (samples.gif_frame((0, 0, 64, 32), 1), samples.gif_frame((8, 4, 20, 10), 2, transparent=0, disposal=2))
    return samples.gif(*frames)


def _palette_png() -> bytes:
    palette = samples.chunk(b"PLTE", samples.PALETTE[:12]) + samples.chunk(b"tRNS", b"\0\x80")
    indices = (np.indices((16, 16)).sum(axis=0) % 4).astype(np.uint8)
    return samples.packed_png(indices, 2, 3, palette)


def _deep_png() -> bytes:
    return samples.png(_detailed().astype(np.uint16) * 257)


def _jpeg2000(codec: str) -> bytes:
    return bytes(imagecodecs.jpeg2k_encode(_detailed(32, 24), level=30, codecformat=codec))


def _avif(bands: int = 3) -> bytes:
    return bytes(imagecodecs.avif_encode(_detailed(32, 24, bands), level=40, speed=10))


def _ico() -> bytes:
    """A directory of two: a PNG and a bitmap without its file header, mask behind it."""
    png, bitmap = samples.png(_detailed(16, 16, 4)), samples.saved(_detailed(8, 8), "RGB", "BMP")[14:]
    bitmap = bitmap[:8] + struct.pack("<i", 16) + bitmap[12:] + bytes(8 * 4)
    head = struct.pack("<HHH", 0, 1, 2)
    head += struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(png), 38)
    head += struct.pack("<BBBBHHII", 8, 8, 0, 0, 1, 24, len(bitmap), 38 + len(png))
    return head + png + bitmap


def _jpeg_with_profile() -> bytes:
    return samples.with_segments(samples.jpeg(_detailed()), *samples.profile_segments(samples.display_p3()))


def _wav() -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(bytes(1_600))
    return buffer.getvalue()


_MAKERS: Mapping[str, Callable[[], bytes]] = {
    "jpeg": lambda: samples.jpeg(_detailed(), quality=80),
    "jpeg-progressive": lambda: samples.jpeg(_detailed(), progressive=True, quality=80),
    "jpeg-grey": lambda: samples.jpeg(_detailed(), mode="L"),
    "jpeg-cmyk": lambda: samples.jpeg(_detailed(), mode="CMYK"),
    "jpeg-everything": _jpeg_with_everything,
    "png": lambda: samples.png(_detailed()),
    "png-alpha": lambda: samples.png(_detailed(bands=4)),
    "png-grey": lambda: samples.png(_detailed(bands=1)[:, :, 0]),
    "png-16": _deep_png,
    "png-palette": _palette_png,
    "png-interlaced": lambda: samples.adam7(_detailed(16, 16)),
    "png-everything": _png_with_everything,
    "apng": _apng,
    "gif": lambda: samples.gif(samples.gif_frame((0, 0, 64, 32), 1)),
    "gif-animated": _gif_animation,
    "webp": lambda: samples.webp(_detailed()),
    "webp-lossless": lambda: samples.webp(_detailed(), lossless=True),
    "webp-alpha": lambda: samples.webp(_detailed(bands=4)),
    "webp-animated": lambda: _vips_pages(".webp"),
    "bmp": lambda: samples.saved(_detailed(), "RGB", "BMP"),
    "bmp-palette": lambda: samples.saved(_detailed(), "P", "BMP"),
    "tiff-raw": samples.grey_tiff,
    "tiff-big-endian": lambda: samples.grey_tiff(endian=">", orientation=5),
    "tiff-lzw": lambda: _vips(".tif", compression="lzw", predictor="horizontal"),
    "tiff-deflate": lambda: _vips(".tif", compression="deflate", tile=True, tile_width=16, tile_height=16),
    "tiff-jpeg": lambda: _vips(".tif", compression="jpeg"),
    "tiff-bilevel": lambda: _vips(".tif", _detailed(bands=1), compression="ccittfax4", bitdepth=1),
    "tiff-pages": lambda: _vips_pages(".tif", compression="packbits"),
    "tiff-cmyk": lambda: samples.saved(_detailed(), "CMYK", "TIFF"),
    "avif": _avif,
    "avif-alpha": lambda: _avif(4),
    "heic": lambda: samples.heic(_detailed(64, 48)),
    "heic-alpha": lambda: samples.heic(_detailed(64, 48, 4)),
    "jp2": lambda: _jpeg2000("jp2"),
    "j2k": lambda: _jpeg2000("j2k"),
    "ico": _ico,
    "jpeg-profile": _jpeg_with_profile,
    "png-profile": lambda: samples.png(_detailed(), before=samples.profile_chunk(samples.adobe_rgb())),
    "svg": lambda: _SVG,
    "pdf": lambda: samples.pdf(size=(40, 60)),
    "pdf-pages": lambda: samples.pdf(pages=2, size=(40, 60)),
    f"{VIDEO}mp4": lambda: clips.clip("mp4", _SHORT),
    f"{VIDEO}turned": lambda: clips.turned(clips.clip("mov", _SHORT)),
    f"{VIDEO}webm": lambda: clips.clip("webm", _SHORT),
    f"{VIDEO}matroska": lambda: clips.clip("matroska", _SHORT),
    f"{VIDEO}avi": lambda: clips.clip("avi", _SHORT),
    f"{VIDEO}gif": lambda: clips.clip("gif", _SHORT),
    f"{SOUND}wav": _wav,
}
