"""Whether an ICC profile (ICC.1:2022) describes sRGB, as most embedded ones do, or another colour space.

A profile is foreign only if it is readable and differs: from sRGB's primaries (adapted to D50, as profiles state them),
or from its tone curve at half the range. A broken profile means nothing, and never fails a picture. Profiles made of
tables instead of a matrix (printers', scanners') are foreign.
"""

from __future__ import annotations

import struct

_HEADER_BYTES = 132
_MAX_TAGS = 256
# IEC 61966-2-1's primaries adapted to D50 by Bradford, as sRGB's own profile states them; 0.01 tells every other
# space in use apart (Display P3's red differs by 0.08, Adobe RGB's by 0.17) and forgives rounding and old white points.
_SRGB = ((b"rXYZ", (0.4361, 0.2225, 0.0139)), (b"gXYZ", (0.3851, 0.7169, 0.0971)), (b"bXYZ", (0.1431, 0.0606, 0.7141)))
_TOLERANCE = 0.01
# sRGB's linear light at half the range (IEC 61966-2-1 §5.2); a gamma of 2.2 gives 0.218 and counts as the same.
_SRGB_HALF, _HALF_TOLERANCE = 0.2140, 0.012


def is_foreign(profile: bytes | None) -> bool:
    """Whether the profile, if there is one and it can be read, says something other than sRGB."""
    if profile is None or len(profile) < _HEADER_BYTES or profile[36:40] != b"acsp":
        return False
    try:
        tags = _tags(profile)
        space = profile[16:20]
        if space == b"GRAY":
            return _differs(_half(profile, tags, b"kTRC"))
        if space != b"RGB ":
            return True
        if any(name not in tags for name, _ in _SRGB):
            return True
        if any(_distance(_xyz(profile, tags[name]), wanted) > _TOLERANCE for name, wanted in _SRGB):
            return True
        return any(_differs(_half(profile, tags, curve)) for curve in (b"rTRC", b"gTRC", b"bTRC"))
    except (struct.error, OverflowError, ZeroDivisionError):
        return False


def _tags(profile: bytes) -> dict[bytes, int]:
    (count,) = struct.unpack_from(">I", profile, 128)
    entries = [struct.unpack_from(">4sII", profile, 132 + 12 * index) for index in range(min(count, _MAX_TAGS))]
    return {name: offset for name, offset, _ in entries}


def _xyz(profile: bytes, offset: int) -> tuple[float, ...]:
    return tuple(value / 65_536 for value in struct.unpack_from(">iii", profile, offset + 8))


def _distance(one: tuple[float, ...], two: tuple[float, ...]) -> float:
    return max(abs(a - b) for a, b in zip(one, two, strict=True))


def _differs(half: float | None) -> bool:
    return half is not None and abs(half - _SRGB_HALF) > _HALF_TOLERANCE


def _half(profile: bytes, tags: dict[bytes, int], name: bytes) -> float | None:
    """The tone curve at 0.5; ``None`` where there is none of a known kind."""
    if name not in tags:
        return None
    at = tags[name]
    kind = profile[at : at + 4]
    if kind == b"curv":
        (count,) = struct.unpack_from(">I", profile, at + 8)
        if count == 0:
            return 0.5
        if count == 1:
            return float(0.5 ** (struct.unpack_from(">H", profile, at + 12)[0] / 256))
        (value,) = struct.unpack_from(">H", profile, at + 12 + 2 * ((count - 1) // 2))
        return float(value / 65_535)
    if kind == b"para":
        (function,) = struct.unpack_from(">H", profile, at + 8)
        values = [value / 65_536 for value in struct.unpack_from(">7i", profile + bytes(28), at + 12)]
        return _parametric(function, values)
    return None


def _parametric(function: int, values: list[float]) -> float | None:
    """ICC.1:2022 table 68: g, a, b, c, d, e, f as far as the function has them."""
    g, a, b, c, d, e, f = values
    if function == 0:
        return float(0.5**g)
    if not 1 <= function <= 4:
        return None
    if function <= 2:
        above = a * 0.5 + b >= 0
        power = float((a * 0.5 + b) ** g) if above else 0.0
        return power + (c if function == 2 else 0.0)
    if d > 0.5:
        return c * 0.5 + (f if function == 4 else 0.0)
    base = a * 0.5 + b
    power = float(base**g) if base >= 0 else 0.0
    return power + (e if function == 4 else 0.0)
