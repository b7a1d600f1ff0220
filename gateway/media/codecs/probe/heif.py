"""AVIF and HEIC (HEIF, ISO/IEC 23008-12; AV1 in it: AVIF 1.1): the primary picture's properties, from the meta box.

Which of the two a file is, is decided by what codes its picture, not by its brand. Orientation is what ``irot`` and
``imir`` say; an EXIF tag beside them only repeats it and is not read (MIAF, ISO/IEC 23000-22 §7.3.9; Pillow 13 does the
same). Gain maps, depth maps and thumbnails are other items and are never looked at. Files with a track (animations)
and all HEIC are decoded by libheif, which crops and turns by itself: for those the raster stated here is the upright
one, with orientation 1. ``complete`` means that every box at the top of the file ends inside it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.boxes import Box, boxes, content
from gateway.media.codecs.probe.icc import is_foreign
from gateway.media.codecs.probe.window import EndOfData, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

# A phone's picture of 48 tiles has a meta box of 4 KiB. In that of a large grid each tile takes some 40 bytes.
_MAX_META_BYTES = 4 * 1024 * 1024
_MAX_PROFILE_BYTES = 4 * 1024 * 1024
_MAX_ITEMS = 65_536
_MAX_FRAMES = 1_000_000
_DERIVED = frozenset({b"grid", b"iovl", b"iden"})
_ALPHA_NAMES = (b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", b"urn:mpeg:hevc:2015:auxid:1")
# EXIF's number for a turn anticlockwise by angle x 90 degrees, then a mirroring (none, top with bottom, left with
# right): ISO/IEC 23008-12 §6.5.10 and §6.5.12, and avif.h of libavif 1.4 for the axis.
_ORIENTATIONS = {
    0: {None: 1, 0: 4, 1: 2},
    1: {None: 8, 0: 5, 1: 7},
    2: {None: 3, 0: 2, 1: 4},
    3: {None: 6, 0: 7, 1: 5},
}


@dataclass(slots=True)
class _Meta:
    """The parts of a meta box that matter, by item id."""

    primary: int = 0
    kinds: dict[int, bytes] = field(default_factory=dict)
    properties: list[Box] = field(default_factory=list)
    owned: dict[int, list[int]] = field(default_factory=dict)
    helpers: list[int] = field(default_factory=list)


def probe_heif(window: Window) -> Probe:
    """Read the file's boxes. Raises Undecodable, UnsupportedFormat, NeedMore."""
    top = list(boxes(window, 0, window.byte_count))
    meta_box = next((box for box in top if box.kind == b"meta"), None)
    if meta_box is None:
        raise Undecodable("The HEIF file describes no picture.")
    try:
        meta = _read_meta(window, meta_box)
        return _describe(window, meta, top)
    except (EndOfData, struct.error, IndexError):
        raise Undecodable("The HEIF file's description is cut or damaged.") from None


def has_track(data: bytes) -> bool:
    """Whether a whole file holds a sequence of pictures beside its primary one."""
    return any(box.kind == b"moov" for box in boxes(Window(data, data, len(data)), 0, len(data)))


def heif_profile(data: bytes) -> bytes | None:
    """The ICC profile of the primary picture of a whole file."""
    window = Window(data, data, len(data))
    meta_box = next((box for box in boxes(window, 0, len(data)) if box.kind == b"meta"), None)
    try:
        return None if meta_box is None else _profile(window, _read_meta(window, meta_box))
    except (EndOfData, struct.error, IndexError):
        return None


def _describe(window: Window, meta: _Meta, top: Sequence[Box]) -> Probe:
    found = _coded_as(meta)
    own = _properties_of(meta, meta.primary)
    track = next((box for box in top if box.kind == b"moov"), None)
    raster = _size(window, own)
    orientation = _orientation(window, own)
    if found is ImageFormat.HEIC or track is not None:
        raster = _cropped(window, own, raster)
        raster = Size(raster.height, raster.width) if orientation >= 5 else raster
        orientation = 1
    bits, grey = _samples(window, meta, own)
    return Probe(
        format=found,
        raster=raster,
        orientation=orientation,
        frames=1 if track is None else _frames(window, track),
        bits_per_sample=bits,
        colour=ColourModel.GREY if grey else ColourModel.RGB,
        has_alpha=any(_is_alpha(window, meta, helper) for helper in meta.helpers),
        complete=all(box.fits for box in top),
        foreign_profile=is_foreign(_profile(window, meta)),
    )


def _coded_as(meta: _Meta) -> ImageFormat:
    kind = meta.kinds.get(meta.primary)
    coded = set(meta.kinds.values()) if kind in _DERIVED else {kind}
    if b"hvc1" in coded:
        return ImageFormat.HEIC
    if b"av01" in coded:
        return ImageFormat.AVIF
    if kind is None:
        raise Undecodable("The HEIF file has no primary picture.")
    raise UnsupportedFormat("HEIF pictures are accepted where they are coded as HEVC or AV1.")


def _read_meta(window: Window, box: Box) -> _Meta:
    if box.stop - box.start > _MAX_META_BYTES:
        raise Undecodable("The HEIF file's description is too long.")
    meta = _Meta()
    for each in boxes(window, box.start + 4, box.stop):
        if each.kind == b"pitm":
            data = content(window, each, 8)
            meta.primary = struct.unpack_from(">I" if data[0] else ">H", data, 4)[0]
        elif each.kind == b"iinf":
            _read_items(window, each, meta)
        elif each.kind == b"iprp":
            _read_properties(window, each, meta)
    for each in boxes(window, box.start + 4, box.stop):
        if each.kind == b"iref":
            _read_references(window, each, meta)
    return meta


def _read_items(window: Window, box: Box, meta: _Meta) -> None:
    version = window.read(box.start, 1)[0]
    for entry in boxes(window, box.start + (8 if version else 6), box.stop):
        if entry.kind != b"infe":
            continue
        data = content(window, entry, 16)
        if data[0] == 2:
            item, kind = struct.unpack_from(">H2x4s", data, 4)
        elif data[0] == 3:
            item, kind = struct.unpack_from(">I2x4s", data, 4)
        else:
            continue
        meta.kinds[item] = kind


def _read_properties(window: Window, box: Box, meta: _Meta) -> None:
    for each in boxes(window, box.start, box.stop):
        if each.kind == b"ipco":
            meta.properties = list(boxes(window, each.start, each.stop))
        elif each.kind == b"ipma":
            _read_associations(content(window, each, _MAX_META_BYTES), meta)


def _read_associations(data: bytes, meta: _Meta) -> None:
    """ISO/IEC 23008-12 §9.3.2: per item its properties, as one- or two-byte numbers counted from 1."""
    version, wide = data[0], bool(data[3] & 1)
    (count,) = struct.unpack_from(">I", data, 4)
    position = 8
    for _ in range(min(count, _MAX_ITEMS)):
        item, indices = struct.unpack_from(">IB" if version else ">HB", data, position)
        position += 5 if version else 3
        if wide:
            numbers = [number & 0x7FFF for number in struct.unpack_from(f">{indices}H", data, position)]
        else:
            numbers = [number & 0x7F for number in struct.unpack_from(f">{indices}B", data, position)]
        position += indices * (2 if wide else 1)
        meta.owned.setdefault(item, []).extend(numbers)


def _read_references(window: Window, box: Box, meta: _Meta) -> None:
    """Which items are auxiliary to the primary one (alpha among them)."""
    wide = bool(window.read(box.start, 1)[0])
    for each in boxes(window, box.start + 4, box.stop):
        if each.kind != b"auxl":
            continue
        data = content(window, each, 1_024)
        (helper, count) = struct.unpack_from(">IH" if wide else ">HH", data)
        letter, start = ("I", 6) if wide else ("H", 4)
        if meta.primary in struct.unpack_from(f">{min(count, 64)}{letter}", data, start):
            meta.helpers.append(helper)


def _properties_of(meta: _Meta, item: int) -> list[Box]:
    return [meta.properties[number - 1] for number in meta.owned.get(item, ()) if 0 < number <= len(meta.properties)]


def _first(own: Sequence[Box], kind: bytes) -> Box | None:
    return next((box for box in own if box.kind == kind), None)


def _size(window: Window, own: Sequence[Box]) -> Size:
    box = _first(own, b"ispe")
    if box is None:
        raise Undecodable("The HEIF file states no size for its picture.")
    width, height = struct.unpack_from(">4xII", content(window, box, 12))
    if not 0 < width < 2**31 or not 0 < height < 2**31:
        raise Undecodable("The HEIF file states no valid size.")
    return Size(width, height)


def _orientation(window: Window, own: Sequence[Box]) -> int:
    turn, mirror = _first(own, b"irot"), _first(own, b"imir")
    angle = content(window, turn, 1)[0] & 3 if turn else 0
    axis = content(window, mirror, 1)[0] & 1 if mirror else None
    return _ORIENTATIONS[angle][axis]


def _cropped(window: Window, own: Sequence[Box], raster: Size) -> Size:
    """The clean aperture, as libheif rounds it: width and height are fractions."""
    box = _first(own, b"clap")
    if box is None:
        return raster
    width_n, width_d, height_n, height_d = struct.unpack_from(">IIII", content(window, box, 16))
    if not (width_n and width_d and height_n and height_d):
        return raster
    width, height = round(width_n / width_d), round(height_n / height_d)
    return Size(max(1, min(raster.width, width)), max(1, min(raster.height, height)))


def _samples(window: Window, meta: _Meta, own: Sequence[Box]) -> tuple[int, bool]:
    """Bits of a sample and whether the picture is grey; of a grid, what its tiles say."""
    box = _first(own, b"av1C") or _first(own, b"hvcC")
    if box is None:
        box = _first(meta.properties, b"av1C") or _first(meta.properties, b"hvcC")
    if box is None:
        return 8, False
    data = content(window, box, 18)
    if box.kind == b"av1C":
        flags = data[2]
        return (12 if flags & 0x20 else 10) if flags & 0x40 else 8, bool(flags & 0x10)
    return 8 + (data[17] & 7), not data[16] & 3


def _is_alpha(window: Window, meta: _Meta, item: int) -> bool:
    box = _first(_properties_of(meta, item), b"auxC")
    return box is not None and content(window, box, 64)[4:].startswith(_ALPHA_NAMES)


def _profile(window: Window, meta: _Meta) -> bytes | None:
    for box in _properties_of(meta, meta.primary):
        if box.kind == b"colr" and content(window, box, 4) in (b"prof", b"rICC"):
            return content(window, box, _MAX_PROFILE_BYTES)[4:]
    return None


def _frames(window: Window, movie: Box) -> int:
    """Samples of the first track that has any: moov, trak, mdia, minf, stbl, stsz."""
    level = [movie]
    for kind in (b"trak", b"mdia", b"minf", b"stbl", b"stsz"):
        level = [child for box in level for child in boxes(window, box.start, box.stop) if child.kind == kind][:8]
    counts: list[int] = [struct.unpack_from(">8xI", content(window, box, 12))[0] for box in level]
    return min(max((1, *counts)), _MAX_FRAMES)
