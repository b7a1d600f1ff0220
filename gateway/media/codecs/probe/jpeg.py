"""JPEG (ITU-T T.81): the marker segments up to the first scan, the end mark, and the number of scans.

A file may carry any bytes behind its end mark (MPO's second picture, a phone's notes): complete means that an end mark
follows the first scan. The number of scans bounds the decoder's work (500 scans of 64 MP take half a minute), so it is
counted wherever a decoder would read more than one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.exif import orientation_of
from gateway.media.codecs.probe.icc import is_foreign
from gateway.media.codecs.probe.window import EndOfData, NeedMore, Window
from gateway.types import ColourModel, ImageFormat, Probe, Size

# Segments before the first scan; real files have about 20, an EXIF block with a large preview up to 100.
_MAX_SEGMENTS = 4_096
_SOF_MARKERS = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
# Baseline, extended sequential, progressive (Huffman), and the first two with arithmetic coding.
_DECODABLE_SOF = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})
_PROGRESSIVE_SOF = frozenset({0xC2, 0xCA})
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
_COLOURS = {1: ColourModel.GREY, 3: ColourModel.RGB, 4: ColourModel.CMYK}
_XMP_NAME = b"http://ns.adobe.com/xap/1.0/\0"
_PROFILE_NAME = b"ICC_PROFILE\0"


@dataclass(slots=True)
class _Header:
    """What the segments before the first scan said."""

    frame: bytes | None = None
    sof: int = 0
    exif: bytes | None = None
    xmp: bytes | None = None
    profile_pieces: list[bytes] = field(default_factory=list)
    scan_components: int = 0
    scan_start: int = 0

    @property
    def profile(self) -> bytes | None:
        """The ICC profile (ICC.1:2022 annex B.4): pieces with their number and how many there are in front."""
        if not self.profile_pieces:
            return None
        return b"".join(piece[2:] for piece in sorted(self.profile_pieces, key=lambda piece: piece[:1]))


def probe_jpeg(window: Window) -> Probe:
    """Read the header. Raises Undecodable, UnsupportedFormat, NeedMore."""
    try:
        header = _read_header(window)
    except EndOfData:
        raise Undecodable("The JPEG ends before its first scan.") from None
    if header.frame is None:
        raise Undecodable("The JPEG has no frame header.")
    bits, height, width, components = struct.unpack_from(">BHHB", header.frame)
    if header.sof not in _DECODABLE_SOF or bits != 8:
        raise UnsupportedFormat("This kind of JPEG (lossless, hierarchical or more than 8 bits) is not accepted.")
    colour = _COLOURS.get(components)
    if colour is None or not width or not height:
        raise Undecodable("The JPEG's frame header is not valid.")
    progressive = header.sof in _PROGRESSIVE_SOF
    several_scans = progressive or header.scan_components < components
    return Probe(
        format=ImageFormat.JPEG,
        raster=Size(width, height),
        orientation=orientation_of(header.exif, header.xmp),
        colour=colour,
        progressive=progressive,
        scans=_count_scans(window.all(), header.scan_start) if several_scans else 1,
        complete=_has_end(window, header.scan_start),
        foreign_profile=is_foreign(header.profile),
    )


def jpeg_profile(data: bytes) -> bytes | None:
    """The ICC profile of a whole file."""
    try:
        return _read_header(Window(data, data, len(data))).profile
    except (EndOfData, Undecodable):
        return None


def _read_header(window: Window) -> _Header:
    header = _Header()
    position = 2
    for _ in range(_MAX_SEGMENTS):
        marker, position = _next_marker(window, position)
        if marker in _BARE_MARKERS:
            continue
        if marker == 0xD9:
            raise Undecodable("The JPEG ends before its first scan.")
        (length,) = struct.unpack(">H", window.read(position, 2))
        if length < 2:
            raise Undecodable("A segment of the JPEG has no valid length.")
        if marker == 0xDA:
            header.scan_components = window.read(position + 2, 1)[0]
            header.scan_start = position + length
            return header
        if marker in _SOF_MARKERS and header.frame is None:
            header.sof, header.frame = marker, window.read(position + 2, 6)
        elif marker == 0xE1:
            _keep_metadata(header, window, position + 2, length - 2)
        elif marker == 0xE2:
            _keep_profile(header, window, position + 2, length - 2)
        position += length
    raise Undecodable("The JPEG has too many segments.")


def _next_marker(window: Window, position: int) -> tuple[int, int]:
    """The marker at or after ``position`` (fill bytes and stray bytes before it are skipped), and where it ends."""
    pair = window.read(position, 2)
    if pair[0] == 0xFF and pair[1] not in (0x00, 0xFF):
        return pair[1], position + 2
    while True:
        position = window.head.find(b"\xff", position)
        if position < 0 or position + 1 >= len(window.head):
            raise EndOfData if window.whole else NeedMore(window.byte_count)
        marker = window.head[position + 1]
        if marker not in (0x00, 0xFF):
            return marker, position + 2
        position += 1


def _keep_metadata(header: _Header, window: Window, start: int, count: int) -> None:
    name = window.read(start, min(count, len(_XMP_NAME)))
    if name.startswith(b"Exif\0") and header.exif is None:
        header.exif = window.read(start, count)
    elif name == _XMP_NAME and header.xmp is None:
        header.xmp = window.read(start, count)


def _keep_profile(header: _Header, window: Window, start: int, count: int) -> None:
    """Other blocks under this marker (MPF: a phone's second picture or gain map) are none of ours."""
    skipped = len(_PROFILE_NAME)
    if count > skipped + 2 and window.read(start, skipped) == _PROFILE_NAME:
        header.profile_pieces.append(window.read(start + skipped, count - skipped))


def _count_scans(data: bytes, first_scan: int) -> int:
    return 1 + data.count(b"\xff\xda", first_scan)


def _has_end(window: Window, first_scan: int) -> bool:
    if window.tail.rfind(b"\xff\xd9", max(0, first_scan - window.tail_start)) >= 0:
        return True
    return window.all().rfind(b"\xff\xd9", first_scan) >= 0
