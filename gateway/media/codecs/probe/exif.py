"""The orientation tag, wherever a format keeps it. Broken metadata reads as 1 (upright) and never fails a picture.

EXIF 2.32 §4.6.4: tag 0x0112 of IFD 0, a SHORT, 1..8. Where EXIF has none, engines that load with Pillow read XMP's
``tiff:Orientation`` (Pillow 13, ``Image.getexif``), so a picture counts as rotated here exactly when it does there.
"""

from __future__ import annotations

import re
import struct

_ORIENTATION_TAG = 0x0112
# A TIFF directory holds 12-byte entries; real ones have a few dozen. More than this is not read.
_MAX_ENTRIES = 1_024
_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')
_INTEGER_FORMATS = {1: "B", 3: "H", 4: "I"}


def exif_orientation(block: bytes) -> int | None:
    """The orientation in a TIFF-structured EXIF block (its ``Exif`` marker may lead it); ``None`` if it has none."""
    if block[:6] in (b"Exif\0\0", b"Exif\0\xff"):
        block = block[6:]
    endian = {b"II": "<", b"MM": ">"}.get(block[:2])
    if endian is None or len(block) < 8:
        return None
    (directory,) = struct.unpack_from(endian + "I", block, 4)
    if directory + 2 > len(block):
        return None
    (entries,) = struct.unpack_from(endian + "H", block, directory)
    for index in range(min(entries, _MAX_ENTRIES)):
        start = directory + 2 + 12 * index
        if start + 12 > len(block):
            return None
        tag, kind, count = struct.unpack_from(endian + "HHI", block, start)
        if tag == _ORIENTATION_TAG:
            return _value(block[start + 8 : start + 12], endian, kind, count)
    return None


def _value(field: bytes, endian: str, kind: int, count: int) -> int:
    letter = _INTEGER_FORMATS.get(kind)
    if letter is None or count != 1:
        return 1
    (value,) = struct.unpack_from(endian + letter, field)
    return sane(value)


def sane(value: int) -> int:
    """Values outside 1..8 mean nothing: leave the picture as stored."""
    return value if 1 <= value <= 8 else 1


def xmp_orientation(packet: bytes) -> int | None:
    """The orientation an XMP packet states; ``None`` if it states none."""
    found = _XMP_ORIENTATION.search(packet)
    return sane(int(found[1])) if found else None


def orientation_of(exif: bytes | None, xmp: bytes | None) -> int:
    """EXIF first, then XMP, then upright."""
    stated = exif_orientation(exif) if exif else None
    if stated is None and xmp:
        stated = xmp_orientation(xmp)
    return 1 if stated is None else stated
