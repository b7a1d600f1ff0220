"""What an image's header says, without decoding a pixel: format, size, orientation, frames, depth, completeness.

Pure: bytes in, Probe out. Bounded: no parser takes more steps than its own stated limit, whatever the bytes.
Decided here: what is an image of an accepted format and what is refused by name. Not decided here: whether a size, a
frame count or an incomplete file is acceptable (the plan's), and what a damaged body looks like (only a decoder tells).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gateway.errors import Undecodable, UnsupportedFormat
from gateway.media.codecs.probe.bmp import probe_bmp
from gateway.media.codecs.probe.gif import probe_gif
from gateway.media.codecs.probe.heif import probe_heif
from gateway.media.codecs.probe.ico import probe_ico
from gateway.media.codecs.probe.jpeg import probe_jpeg
from gateway.media.codecs.probe.jpeg2000 import probe_jpeg2000
from gateway.media.codecs.probe.png import probe_png
from gateway.media.codecs.probe.sniff import looks_like_text, other_kind, sniff
from gateway.media.codecs.probe.tiff import probe_tiff
from gateway.media.codecs.probe.webp import probe_webp
from gateway.media.codecs.probe.window import NeedMore, Window
from gateway.types import ImageFormat, Probe

__all__ = ["HEAD_BYTES", "TAIL_BYTES", "NeedMore", "probe", "probe_all", "sniff"]

# Holds the headers of nearly every camera's file (EXIF with its preview is at most 64 KiB).
HEAD_BYTES = 131_072
# Holds the end mark, and the trailing metadata of WebP and PNG unless it carries a preview.
TAIL_BYTES = 16_384

# Formats whose header is a header. A PDF has none: its pages are found by its renderer, where a policy asks for it.
_PARSERS: Mapping[ImageFormat, Callable[[Window], Probe]] = {
    ImageFormat.JPEG: probe_jpeg,
    ImageFormat.PNG: probe_png,
    ImageFormat.WEBP: probe_webp,
    ImageFormat.GIF: probe_gif,
    ImageFormat.BMP: probe_bmp,
    ImageFormat.TIFF: probe_tiff,
    ImageFormat.AVIF: probe_heif,
    ImageFormat.HEIC: probe_heif,
    ImageFormat.JPEG2000: probe_jpeg2000,
    ImageFormat.ICO: probe_ico,
}
_ACCEPTED = "send JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF, HEIC, JPEG 2000 or ICO"
_REFUSALS = {
    ImageFormat.SVG: "SVG is a drawing that would have to be executed, and is not accepted; send it as PNG.",
    ImageFormat.PDF: "PDF documents are not accepted here; send pages as PNG or JPEG.",
}


def probe(head: bytes, tail: bytes, byte_count: int) -> Probe:
    """Read the header of a file of ``byte_count`` bytes from its first and last bytes.

    ``head`` and ``tail`` are what is in hand (HEAD_BYTES and TAIL_BYTES suffice for most files); a file shorter than
    HEAD_BYTES is handed over whole. Raises Undecodable, UnsupportedFormat; NeedMore when the answer lies between.
    """
    if byte_count <= 0 or not head:
        raise Undecodable("The image is empty.")
    found = sniff(head)
    if found is None:
        raise _not_an_image(head)
    if found in _REFUSALS:
        raise UnsupportedFormat(_REFUSALS[found])
    return _PARSERS[found](Window(head, tail, byte_count))


def probe_all(data: bytes) -> Probe:
    """Read the header of a whole file. Raises Undecodable, UnsupportedFormat; never NeedMore."""
    return probe(data, data, len(data))


def _not_an_image(head: bytes) -> Undecodable | UnsupportedFormat:
    name = other_kind(head)
    if name is not None:
        return UnsupportedFormat(f"{name} is not accepted; {_ACCEPTED}.")
    if looks_like_text(head):
        return Undecodable(f"The data is text, not an image; {_ACCEPTED}.")
    return Undecodable(f"The data is not an image of a known format; {_ACCEPTED}.")
