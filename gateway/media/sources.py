"""What an image source is, judged by its first bytes: data URL, remote URL, bare base64, or nothing we would open.

Decided here: how a source is read before anything is decoded, and which spelling is canonical. Not decided here: what
the payload decodes to (``payload``), whether an address may be fetched (``netguard``). Used on both sides: the loop
classifies, the worker parses the head. Nothing here ever opens a path or an address.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import Enum, auto

from gateway.errors import ImageTooLarge, InvalidRequest, Undecodable, UnsupportedFormat
from gateway.ports import Accepts
from gateway.types import ImageFormat, Probe

# How much of a source is looked at to tell what it is, and how long a data URL's part before the comma may be.
HEAD_BYTES = 1_024
# Longer than any address a browser or a signed storage link makes.
MAX_URL_BYTES = 8_192

_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]{0,31}):")
# The base64 of the magic numbers of JPEG, PNG, GIF, RIFF, TIFF (both orders), BMP and ISO media (AVIF, HEIC: a box
# length below 256, then "ftyp"), in as many whole characters as the magic fixes.
_BASE64_MAGIC = re.compile(rb"/9j/|iVBORw0KGgo|R0lGOD|UklGR|SUkqA|TU0AK|Qk[0-3]|AAAA[A-Za-z0-9+/]GZ0eX")
_BASE64_TEXT = re.compile(rb"[A-Za-z0-9+/_=\s-]{32,}")
_WHITE_SPACE = b" \t\r\n\f\v"


class SourceKind(Enum):
    DATA_URL = auto()
    REMOTE = auto()
    RAW_BASE64 = auto()


def classify(head: bytes) -> SourceKind:
    """Tell what a source is by its first ``HEAD_BYTES`` (JSON escapes resolved). Raises InvalidRequest for the rest."""
    head = head.lstrip(_WHITE_SPACE)
    if not head:
        raise InvalidRequest("The image source is an empty string.")
    scheme = _SCHEME.match(head)
    if scheme is None:
        if _BASE64_MAGIC.match(head) and _BASE64_TEXT.fullmatch(head):
            return SourceKind.RAW_BASE64
        raise InvalidRequest("The image source is neither a data URL nor an http(s) URL nor base64 of a known image.")
    name = scheme[1].lower()
    if name == b"data":
        return SourceKind.DATA_URL
    if name in (b"http", b"https"):
        return SourceKind.REMOTE
    raise InvalidRequest("Image sources are data URLs or http(s) URLs; no other scheme is opened.")


def resolve_head(text: bytes, *, has_escapes: bool) -> bytes:
    """The beginning of a JSON string's bytes with escapes resolved, as far as they are complete.

    Raises InvalidRequest for an escape that JSON does not know.
    """
    if not has_escapes or b"\\" not in text:
        return text
    # An escape cut by the window's edge is at most five bytes of a \uXXXX, or twelve of a surrogate pair.
    for cut in range(min(12, len(text)) + 1):
        try:
            resolved = json.loads(b'"' + text[: len(text) - cut] + b'"')
        except ValueError:
            continue
        return str(resolved).encode("utf-8", "surrogatepass")
    raise InvalidRequest("The image source has an escape that JSON does not know.")


@dataclass(frozen=True, slots=True)
class DataUrlHead:
    """What stands before the comma (RFC 2397). ``media_type`` is lower case, "" when missing; it is never believed.

    ``payload_start`` is the offset behind the comma.
    """

    media_type: str
    is_base64: bool
    payload_start: int


def parse_data_url_head(text: bytes) -> DataUrlHead:
    """Read ``data:[type][;parameter…][;base64],`` in any case and with any parameters.

    Raises Undecodable when there is no comma within ``HEAD_BYTES``.
    """
    comma = text.find(b",", 0, HEAD_BYTES)
    if comma < 0:
        raise Undecodable("The data URL has no comma between its head and its data.")
    fields = text[:comma].partition(b":")[2].split(b";")
    media_type = fields[0].strip(_WHITE_SPACE).lower().decode("ascii", "replace")
    is_base64 = len(fields) > 1 and fields[-1].strip(_WHITE_SPACE).lower() == b"base64"
    return DataUrlHead(media_type, is_base64, comma + 1)


def canonical_prefix(probe: Probe) -> bytes:
    """What every data URL that we write begins with."""
    return f"data:{probe.format.media_type};base64,".encode("ascii")


def check_size(byte_count: int, max_image_bytes: int) -> None:
    """Raises ImageTooLarge for a file of more bytes than allowed."""
    if byte_count > max_image_bytes:
        raise ImageTooLarge(f"The image has {byte_count} bytes; at most {max_image_bytes} are accepted.")


def check_pixels(probe: Probe, max_input_pixels: int) -> None:
    """Raises ImageTooLarge when the header announces more pixels than allowed; no pixel has been decoded then."""
    raster = probe.raster
    if raster.pixels > max_input_pixels:
        raise ImageTooLarge(
            f"The image has {raster.width} x {raster.height} = {raster.pixels} pixels; "
            f"at most {max_input_pixels} are accepted."
        )


def check_accepted(probe: Probe, accepts: Accepts) -> None:
    """Whether this is looked at at all; facts may have been found for somebody who accepts more.

    Raises Undecodable for a file whose own end mark or declared length is missing (half a picture is no picture), and
    UnsupportedFormat for a PDF.
    """
    if probe.format is ImageFormat.PDF and not accepts.documents:
        raise UnsupportedFormat("PDF documents are not accepted here; send pages as PNG or JPEG.")
    if not probe.complete and not accepts.truncated:
        raise Undecodable("The image is cut off or damaged: its file does not hold the whole picture.")
