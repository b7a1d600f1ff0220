"""Small image files built byte by byte, so that a test says exactly what is in them and may lie where it wants to."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence

import imagecodecs
import numpy as np
import pillow_heif
from numpy.typing import NDArray
from PIL import Image

from gateway.media.codecs.probe import probe_all
from gateway.types import Change, ImagePlan, ImageTokens, OutputFormat, Size

Pixels = NDArray[np.uint8]
RED, GREEN, BLUE, YELLOW = (220, 30, 30), (30, 160, 60), (40, 60, 200), (235, 210, 40)
TOKENS = ImageTokens(1, 0, 2, (1, 1, 1), 1, 4)


def plan_for(
    target: Size,
    output: OutputFormat = OutputFormat.AUTO,
    background: tuple[int, int, int] = (255, 255, 255),
) -> ImagePlan:
    """A plan that asks for pixels: to ``target``, in whatever format ``output`` allows."""
    return ImagePlan(target, target, (Change.RESIZED,), output, 95, background, "test", TOKENS, TOKENS)


def quarters(width: int = 64, height: int = 32) -> Pixels:
    """Red and green above, blue and yellow below."""
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = RED
    pixels[: height // 2, width // 2 :] = GREEN
    pixels[height // 2 :, : width // 2] = BLUE
    pixels[height // 2 :, width // 2 :] = YELLOW
    return pixels


def corners(pixels: Pixels) -> list[tuple[int, ...]]:
    """The middles of the four quarters, row by row."""
    height, width = pixels.shape[:2]
    places = [(y, x) for y in (height // 4, height * 3 // 4) for x in (width // 4, width * 3 // 4)]
    return [tuple(int(value) for value in np.atleast_1d(pixels[place])) for place in places]


def near(found: Sequence[tuple[int, ...]], wanted: Sequence[tuple[int, ...]], tolerance: int) -> bool:
    return all(
        abs(a - b) <= tolerance for one, two in zip(found, wanted, strict=True) for a, b in zip(one, two, strict=True)
    )


def opened(data: bytes) -> Pixels:
    """The picture in RGB, decoded by another library than the one that wrote it."""
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"))


def mode_of(data: bytes) -> str:
    with Image.open(io.BytesIO(data)) as image:
        return image.mode


# --- EXIF -----------------------------------------------------------------------------------------------------------


def exif(orientation: int, endian: str = "<", kind: int = 3, count: int = 1, entries_before: int = 1) -> bytes:
    """A TIFF block whose IFD 0 has a few other tags and then an orientation."""
    mark = b"II*\0" if endian == "<" else b"MM\0*"
    other = b"".join(struct.pack(endian + "HHII", 0x9000 + tag, 4, 1, 0) for tag in range(entries_before))
    value = struct.pack(endian + {1: "B", 3: "H", 4: "I"}.get(kind, "H"), orientation).ljust(4, b"\0")
    field = struct.pack(endian + "HHI", 0x0112, kind, count) + value
    return mark + struct.pack(endian + "IH", 8, entries_before + 1) + other + field + bytes(4)


# --- JPEG -----------------------------------------------------------------------------------------------------------


def jpeg(pixels: Pixels | None = None, mode: str = "RGB", *, progressive: bool = False, quality: int = 95) -> bytes:
    buffer = io.BytesIO()
    image = Image.fromarray(quarters() if pixels is None else pixels)
    image.convert(mode).save(buffer, "JPEG", quality=quality, subsampling=0, progressive=progressive)
    return buffer.getvalue()


def segment(marker: int, payload: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(payload) + 2) + payload


def with_segments(file: bytes, *segments: bytes) -> bytes:
    """A JPEG with segments put right behind its start mark."""
    return file[:2] + b"".join(segments) + file[2:]


def oriented_jpeg(orientation: int, endian: str = "<", pixels: Pixels | None = None) -> bytes:
    return with_segments(jpeg(pixels), segment(0xE1, b"Exif\0\0" + exif(orientation, endian)))


# --- PNG ------------------------------------------------------------------------------------------------------------


def chunk(name: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + name + payload + struct.pack(">I", zlib.crc32(name + payload))


def png_file(
    size: tuple[int, int],
    bits: int,
    colour_type: int,
    raw: bytes,
    before: bytes = b"",
    after: bytes = b"",
    interlace: int = 0,
) -> bytes:
    header = struct.pack(">IIBBBBB", *size, bits, colour_type, 0, 0, interlace)
    body = chunk(b"IHDR", header) + before + chunk(b"IDAT", zlib.compress(raw)) + after + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def scanlines(samples: NDArray[np.uint8] | NDArray[np.uint16]) -> bytes:
    """Rows with filter 0 in front; 16-bit samples in network order."""
    return b"".join(b"\0" + row.astype(row.dtype.newbyteorder(">")).tobytes() for row in samples)


def png(
    samples: NDArray[np.uint8] | NDArray[np.uint16] | None = None, before: bytes = b"", after: bytes = b""
) -> bytes:
    """1, 2, 3 or 4 bands of 8 or 16 bits."""
    shown = quarters() if samples is None else samples
    bands = 1 if shown.ndim == 2 else shown.shape[2]
    bits, colour_type = shown.dtype.itemsize * 8, {1: 0, 2: 4, 3: 2, 4: 6}[bands]
    return png_file((shown.shape[1], shown.shape[0]), bits, colour_type, scanlines(shown), before, after)


def packed_png(values: Pixels, bits: int, colour_type: int, before: bytes = b"") -> bytes:
    """Grey or palette of 1, 2 or 4 bits; the width is a multiple of the samples in a byte."""
    height, width = values.shape
    weights = 2 ** (bits * np.arange(8 // bits)[::-1])
    raw = (values.reshape(height, -1, 8 // bits) * weights).sum(axis=2).astype(np.uint8)
    return png_file((width, height), bits, colour_type, scanlines(raw), before)


def adam7(pixels: Pixels) -> bytes:
    steps = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    passes = [pixels[top::down, left::right] for left, top, right, down in steps]
    raw = b"".join(scanlines(part) for part in passes if part.size)
    return png_file((pixels.shape[1], pixels.shape[0]), 8, 2, raw, interlace=1)


# --- GIF ------------------------------------------------------------------------------------------------------------

PALETTE = bytes(RED + GREEN + BLUE + YELLOW) + bytes(12)


def gif_frame(
    place: tuple[int, int, int, int],
    index: int,
    transparent: int | None = None,
    disposal: int = 0,
    pixels: int | None = None,
) -> bytes:
    """A frame of one colour at (left, top, width, height); ``pixels`` less than the area is data that ends early."""
    control = b"\x21\xf9\x04" + bytes((disposal << 2 | (transparent is not None), 10, 0, transparent or 0, 0))
    data = _lzw(index, place[2] * place[3] if pixels is None else pixels)
    blocks = b"".join(bytes((len(data[at : at + 255]),)) + data[at : at + 255] for at in range(0, len(data), 255))
    return control + b"\x2c" + struct.pack("<HHHHB", *place, 0) + b"\x03" + blocks + b"\0"


def _lzw(index: int, count: int) -> bytes:
    """Four-bit codes with the table cleared before it can grow."""
    codes = [8]
    for at in range(count):
        if at and at % 6 == 0:
            codes.append(8)
        codes.append(index)
    codes.append(9)
    codes += [0] * (len(codes) % 2)
    return bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))


def gif(*frames: bytes, size: tuple[int, int] = (64, 32), trailer: bytes = b";") -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", *size, 0x80 | 0x10 | 2, 0, 0) + PALETTE + b"".join(frames) + trailer


# --- WebP -----------------------------------------------------------------------------------------------------------


def webp(pixels: Pixels | None = None, *, lossless: bool = False) -> bytes:
    shown = quarters() if pixels is None else pixels
    return bytes(imagecodecs.webp_encode(shown, level=None if lossless else 90, lossless=lossless))


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    body = b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def vp8x(size: tuple[int, int], flags: int) -> tuple[bytes, bytes]:
    sides = (size[0] - 1).to_bytes(3, "little") + (size[1] - 1).to_bytes(3, "little")
    return b"VP8X", bytes((flags, 0, 0, 0)) + sides


def bitstream(file: bytes) -> tuple[bytes, bytes]:
    """The picture chunk of a simple WebP."""
    (length,) = struct.unpack("<I", file[16:20])
    return file[12:16], file[20 : 20 + length]


# --- BMP, TIFF ------------------------------------------------------------------------------------------------------


def saved(pixels: Pixels, mode: str, kind: str) -> bytes:
    """What PIL writes: for formats whose making is not the point."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def tiff(tags: list[tuple[int, int, int, int]], pixels: bytes, endian: str = "<", following: int = 0) -> bytes:
    """One directory at offset 8 with (tag, kind, count, value) and the pixels behind it; value -1 = their offset."""
    data_at = 8 + 2 + 12 * len(tags) + 4
    entries = b""
    for tag, kind, count, value in tags:
        shown = data_at if value == -1 else value
        field = (
            struct.pack(endian + "H", shown) + b"\0\0" if kind == 3 and count == 1 else struct.pack(endian + "I", shown)
        )
        entries += struct.pack(endian + "HHI", tag, kind, count) + field
    mark = b"II*\0" if endian == "<" else b"MM\0*"
    return mark + struct.pack(endian + "IH", 8, len(tags)) + entries + struct.pack(endian + "I", following) + pixels


def grey_tiff(width: int = 8, height: int = 4, endian: str = "<", following: int = 0, orientation: int = 1) -> bytes:
    tags = [(256, 3, 1, width), (257, 3, 1, height), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, -1)]
    tags += [(274, 3, 1, orientation), (277, 3, 1, 1), (278, 3, 1, height), (279, 4, 1, width * height)]
    return tiff(tags, bytes(place % 251 for place in range(width * height)), endian, following)


# --- AVIF, HEIC, JPEG 2000, PDF -------------------------------------------------------------------------------------


def avif(pixels: Pixels | NDArray[np.uint16] | None = None, bits: int = 8) -> bytes:
    shown = quarters() if pixels is None else pixels
    return bytes(imagecodecs.avif_encode(shown, level=95, bitspersample=bits))


def heic(pixels: Pixels | None = None) -> bytes:
    shown = quarters() if pixels is None else pixels
    mode = {2: "L", 3: "RGB"}[shown.ndim] if shown.ndim == 2 or shown.shape[2] == 3 else "RGBA"
    picture = pillow_heif.from_bytes(mode, (shown.shape[1], shown.shape[0]), shown.tobytes())
    buffer = io.BytesIO()
    picture.save(buffer, quality=95)
    return buffer.getvalue()


def jpeg2000(pixels: Pixels | NDArray[np.uint16] | None = None, kind: str = "jp2", bits: int | None = None) -> bytes:
    shown = quarters() if pixels is None else pixels
    return bytes(imagecodecs.jpeg2k_encode(shown, codecformat=kind, bitspersample=bits))


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", len(body) + 8, kind) + body


def with_property(file: bytes, kind: bytes, body: bytes) -> bytes:
    """A HEIF of one picture with one more property that is the picture's own; offsets behind it are moved."""
    added = box(kind, body)
    at = file.index(b"ipco") - 4
    (length,) = struct.unpack_from(">I", file, at)
    count = 0
    position = at + 8
    while position < at + length:
        position += struct.unpack_from(">I", file, position)[0]
        count += 1
    old_ipma = file.index(b"ipma") - 4
    grown = len(added) + 1
    out = bytearray(file[: at + length] + added + file[at + length :])
    ipma = old_ipma + len(added)
    # version and flags 0, one item: its number of properties stands behind header, count and item id.
    owned = ipma + 8 + 4 + 4 + 2
    out[owned] += 1
    out[owned + out[owned] : owned + out[owned]] = bytes((0x80 | (count + 1),))  # essential, as turns must be
    for place, more in ((ipma, 1), (at, len(added))):
        struct.pack_into(">I", out, place, struct.unpack_from(">I", out, place)[0] + more)
    for name in (b"iprp", b"meta"):
        place = file.index(name) - 4
        struct.pack_into(">I", out, place, struct.unpack_from(">I", out, place)[0] + grown)
    mdat = file.index(b"mdat")
    start = struct.pack(">I", mdat + 4)
    offset = file.index(start, file.index(b"iloc"))
    struct.pack_into(">I", out, offset, mdat + 4 + grown)
    return bytes(out)


def pdf(pages: int = 1, size: tuple[int, int] = (200, 100)) -> bytes:
    """Pages of red above blue on the left, black text at the right; each page is 50 points higher than the last."""
    kids = b" ".join(b"%d 0 R" % (3 + 2 * index) for index in range(pages))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, pages)]
    for index in range(pages):
        drawing = b"1 0 0 rg 0 50 100 300 re f 0 0 1 rg 0 0 100 50 re f 0 g BT /F 24 Tf 110 20 Td (Page) Tj ET"
        font = b"/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
        media = b"/MediaBox[0 0 %d %d]" % (size[0], size[1] + 50 * index)
        objects.append(b"<</Type/Page/Parent 2 0 R%s/Contents %d 0 R%s>>" % (media, 4 + 2 * index, font))
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(drawing), drawing))
    out, starts = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        starts.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


# --- colour profiles ------------------------------------------------------------------------------------------------

D65 = (0.3127, 0.3290, 1.0)
P3 = (0.680, 0.320, 1.0, 0.265, 0.690, 1.0, 0.150, 0.060, 1.0)


def _timeless(profile: bytes) -> bytes:
    """The same profile made at no particular time: the date in its header (ICC.1 §7.2.8) is the clock's."""
    return profile[:24] + bytes(12) + profile[36:]


def display_p3() -> bytes:
    return _timeless(imagecodecs.cms_profile("rgb", whitepoint=D65, primaries=P3, gamma=2.2))


def adobe_rgb() -> bytes:
    return _timeless(imagecodecs.cms_profile("adobergb"))


def srgb() -> bytes:
    return _timeless(imagecodecs.cms_profile("srgb"))


def profile_segments(profile: bytes, piece_bytes: int = 60_000) -> list[bytes]:
    """A profile as JPEG segments."""
    pieces = [profile[at : at + piece_bytes] for at in range(0, len(profile), piece_bytes)]
    return [
        segment(0xE2, b"ICC_PROFILE\0" + bytes((number, len(pieces))) + piece) for number, piece in enumerate(pieces, 1)
    ]


def profile_chunk(profile: bytes) -> bytes:
    return chunk(b"iCCP", b"name\0\0" + zlib.compress(profile))


def still(file: bytes) -> ImagePlan:
    """A plan that keeps a file's own size."""
    return plan_for(probe_all(file).upright)


def deep_quarters(bits: int) -> NDArray[np.uint16]:
    """The four colours in samples of more than eight bits."""
    return np.left_shift(quarters().astype(np.uint16), np.uint16(bits - 8))
