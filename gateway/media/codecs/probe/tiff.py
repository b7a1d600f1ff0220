"""TIFF 6.0 and BigTIFF: the first page's directory, the number of pages, and the sizes of the first of them.

Pages may stand anywhere in the file and a directory may point at itself; both walks are bounded. ``complete`` means
that every strip or tile of the first page lies inside the file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.exif import sane
from gateway.media.codecs.probe.icc import is_foreign
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import MAX_PAGES, ColourModel, ImageFormat, Page, Probe, Size

_MAX_ENTRIES = 1_024
_MAX_PAGES = 10_000
_MAX_VALUES = 1_000_000
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _ORIENTATION = 256, 257, 258, 259, 262, 274
_STRIP_OFFSETS, _STRIP_BYTES, _TILE_OFFSETS, _TILE_BYTES = 273, 279, 324, 325
_EXTRA_SAMPLES, _SAMPLE_FORMAT, _PROFILE = 338, 339, 34675
# BYTE, SHORT, LONG, UNDEFINED, LONG8
_INTEGERS = {1: ("B", 1), 3: ("H", 2), 4: ("I", 4), 7: ("B", 1), 16: ("Q", 8)}
# PhotometricInterpretation. YCbCr is decoded only as the JPEG codec delivers it; Lab and others are not accepted.
_COLOURS = {
    0: ColourModel.GREY,
    1: ColourModel.GREY,
    2: ColourModel.RGB,
    3: ColourModel.PALETTE,
    5: ColourModel.CMYK,
    6: ColourModel.RGB,
}
_YCBCR, _JPEG_COMPRESSION = 6, 7
_UNSIGNED = 1


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How numbers are written: byte order, and the widths of classic or big files."""

    endian: str
    big: bool

    @property
    def offset_bytes(self) -> int:
        return 8 if self.big else 4

    def number(self, data: bytes) -> int:
        return int.from_bytes(data, "little" if self.endian == "<" else "big")


def probe_tiff(window: Window, page: int = 0) -> Probe:
    """Read a page's directory and count all. Raises Undecodable, UnsupportedFormat, NeedMore."""
    try:
        head = window.read(0, 16)
    except EndOfData:
        raise Undecodable("The TIFF ends within its header.") from None
    dialect = _Dialect("<" if head[:2] == b"II" else ">", big=dialect_is_big(head))
    first = dialect.number(head[8:16] if dialect.big else head[4:8])
    try:
        tags, following = _directory(window, dialect, first)
        starts = _chain(window, dialect, first, following)
        if page:
            tags, _ = _directory(window, dialect, starts[page])
    except (EndOfData, IndexError):
        raise Undecodable("The TIFF's directory lies outside the file.") from None
    size = _size(tags)
    bits = max(tags.get(_BITS) or (1,))
    if any(kind != _UNSIGNED for kind in tags.get(_SAMPLE_FORMAT, ())) or bits not in (1, 2, 4, 8, 16):
        raise UnsupportedFormat("TIFF files with other than unsigned samples of up to 16 bits are not accepted.")
    photometric = _one(tags, _PHOTOMETRIC, 1)
    if photometric not in _COLOURS or (photometric == _YCBCR and _one(tags, _COMPRESSION, 1) != _JPEG_COMPRESSION):
        raise UnsupportedFormat("TIFF files in this colour space are not accepted.")
    return Probe(
        format=ImageFormat.TIFF,
        raster=size,
        orientation=sane(_one(tags, _ORIENTATION, 1)),
        frames=len(starts),
        bits_per_sample=bits,
        colour=_COLOURS[photometric],
        has_alpha=any(kind in (1, 2) for kind in tags.get(_EXTRA_SAMPLES, ())),
        complete=_pixels_inside(window, tags),
        foreign_profile=is_foreign(_profile(tags)),
        pages=_pages(window, dialect, starts) if len(starts) > 1 else (),
    )


def tiff_profile(data: bytes, page: int = 0) -> bytes | None:
    """The ICC profile of a page of a whole file. Raises Undecodable."""
    window = Window(data, data, len(data))
    dialect = _Dialect("<" if data[:2] == b"II" else ">", big=dialect_is_big(data[:16]))
    try:
        first = dialect.number(data[8:16] if dialect.big else data[4:8])
        _, following = _directory(window, dialect, first)
        return _profile(_directory(window, dialect, _chain(window, dialect, first, following)[page])[0])
    except (EndOfData, IndexError):
        return None


def _profile(tags: dict[int, tuple[int, ...]]) -> bytes | None:
    values = tags.get(_PROFILE)
    return bytes(values) if values and max(values) < 256 else None


def _size(tags: dict[int, tuple[int, ...]]) -> Size:
    width, height = _one(tags, _WIDTH, 0), _one(tags, _HEIGHT, 0)
    if not 0 < width < 2**31 or not 0 < height < 2**31:
        raise Undecodable("The TIFF's directory states no valid size.")
    return Size(width, height)


def _pages(window: Window, dialect: _Dialect, starts: list[int]) -> tuple[Page, ...]:
    """The first pages' sizes; the list ends before one that cannot be read."""
    pages: list[Page] = []
    try:
        for start in starts[:MAX_PAGES]:
            tags, _ = _directory(window, dialect, start)
            pages.append(Page(_size(tags), sane(_one(tags, _ORIENTATION, 1))))
    except (EndOfData, Undecodable):
        pass
    return tuple(pages)


def dialect_is_big(head: bytes) -> bool:
    """Whether the version number is BigTIFF's 43."""
    return head[2:4] in (b"\x2b\0", b"\0\x2b")


def _one(tags: dict[int, tuple[int, ...]], tag: int, default: int) -> int:
    values = tags.get(tag)
    return values[0] if values else default


_WANTED = frozenset(
    {_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _ORIENTATION, _EXTRA_SAMPLES, _SAMPLE_FORMAT, _PROFILE}
    | {_STRIP_OFFSETS, _STRIP_BYTES, _TILE_OFFSETS, _TILE_BYTES}
)


def _directory(window: Window, dialect: _Dialect, start: int) -> tuple[dict[int, tuple[int, ...]], int]:
    """The wanted tags of the directory at ``start`` and the offset of the next one (0 = none)."""
    entry_bytes, count_bytes = (20, 8) if dialect.big else (12, 2)
    count = dialect.number(window.read(start, count_bytes))
    if not 0 < count <= _MAX_ENTRIES:
        raise Undecodable("The TIFF's directory is not valid.")
    entries = window.read(start + count_bytes, count * entry_bytes)
    tags: dict[int, tuple[int, ...]] = {}
    for at in range(0, len(entries), entry_bytes):
        tag, kind = struct.unpack_from(dialect.endian + "HH", entries, at)
        if tag in _WANTED and tag not in tags:
            tags[tag] = _values(window, dialect, kind, entries[at + 4 : at + entry_bytes])
    return tags, _next_directory(window, dialect, start + count_bytes + count * entry_bytes)


def _values(window: Window, dialect: _Dialect, kind: int, field: bytes) -> tuple[int, ...]:
    letter, item_bytes = _INTEGERS.get(kind, ("", 0))
    width = dialect.offset_bytes
    count, inline = dialect.number(field[:width]), field[width:]
    if not item_bytes or not 0 < count <= _MAX_VALUES:
        return ()
    byte_count = count * item_bytes
    raw = inline if byte_count <= width else window.read(dialect.number(inline), byte_count)
    return struct.unpack_from(f"{dialect.endian}{count}{letter}", raw)


def _next_directory(window: Window, dialect: _Dialect, at: int) -> int:
    try:
        return dialect.number(window.read(at, dialect.offset_bytes))
    except EndOfData:
        return 0


def _chain(window: Window, dialect: _Dialect, first: int, following: int) -> list[int]:
    """Where the pages' directories stand. A chain that leaves the file or comes back to itself ends there."""
    entry_bytes, count_bytes = (20, 8) if dialect.big else (12, 2)
    starts, seen = [first], {first}
    try:
        while following and following not in seen and len(seen) <= _MAX_PAGES:
            count = dialect.number(window.read(following, count_bytes))
            starts.append(following)
            seen.add(following)
            following = _next_directory(window, dialect, following + count_bytes + count * entry_bytes)
    except EndOfData:
        pass
    return starts


def _pixels_inside(window: Window, tags: dict[int, tuple[int, ...]]) -> bool:
    for offsets_tag, bytes_tag in ((_STRIP_OFFSETS, _STRIP_BYTES), (_TILE_OFFSETS, _TILE_BYTES)):
        offsets, sizes = tags.get(offsets_tag, ()), tags.get(bytes_tag, ())
        if offsets:
            ends = (start + size for start, size in zip(offsets, sizes, strict=False))
            return max(ends, default=max(offsets)) <= window.byte_count
    return False
