"""From the text of an image source to the bytes of the file: every spelling of a data URL, strictly.

Decided here: which deviations are harmless (line breaks, missing padding, the URL-safe alphabet, percent-encoding) and
which are not. Not decided here: what the file is (the codecs' probe). Runs in image workers only: it touches megabytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

import pybase64

from gateway.errors import InvalidRequest, Undecodable
from gateway.media.sources import HEAD_BYTES, SourceKind, check_size, classify, parse_data_url_head

# Decoded bytes per base64 character, with room for a few line breaks and paddings.
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_WHITE_SPACE = b" \t\r\n\f\v"


@dataclass(frozen=True, slots=True)
class Payload:
    """``prefix`` is what stood before the data (b"" for bare base64); ``strict`` that the data needed no leniency."""

    data: bytes
    prefix: bytes
    strict: bool


def read_text(text: memoryview, *, has_escapes: bool, max_image_bytes: int) -> Payload:
    """Decode one source string as it stands in the body.

    Raises InvalidRequest (not an inline image), Undecodable (damaged text, no data), ImageTooLarge (before decoding
    where the length tells).
    """
    if has_escapes:
        text = memoryview(unescape(bytes(text)))
    head = bytes(text[:HEAD_BYTES])
    kind = classify(head)
    if kind is SourceKind.REMOTE:
        raise InvalidRequest("The image source is not an inline image.")
    if kind is SourceKind.RAW_BASE64:
        data, strict = decode_base64(text, max_image_bytes)
        return Payload(_not_empty(data), b"", strict)
    # White space in front shifts nothing: the head's offsets count it.
    parsed = parse_data_url_head(head)
    prefix, rest = head[: parsed.payload_start], text[parsed.payload_start :]
    if not parsed.is_base64:
        return Payload(_not_empty(unquote_to_bytes(bytes(rest))), prefix, strict=False)
    data, strict = decode_base64(rest, max_image_bytes)
    return Payload(_not_empty(data), prefix, strict)


def unescape(text: bytes) -> bytes:
    """Resolve JSON escapes; PHP's ``\\/`` by replacement, anything else by the parser."""
    replaced = text.replace(b"\\/", b"/")
    if b"\\" not in replaced:
        return replaced
    try:
        return str(json.loads(b'"' + text + b'"')).encode("utf-8", "surrogatepass")
    except ValueError as error:
        raise InvalidRequest("The image source is not a valid JSON string.") from error


def decode_base64(text: memoryview, max_image_bytes: int) -> tuple[bytes, bool]:
    """The bytes, and whether the text was strict padded base64. The lenient way costs several copies."""
    if len(text) <= max_image_bytes * 4 // 3 + 4:
        try:
            return pybase64.b64decode(text, validate=True), True
        except ValueError:
            pass
    plain = bytes(text)
    if b"%" in plain:
        plain = unquote_to_bytes(plain)
    plain = plain.translate(_URL_SAFE, _WHITE_SPACE).rstrip(b"=")
    check_size(len(plain) * 3 // 4, max_image_bytes)
    if len(plain) % 4 == 1:
        raise Undecodable("The image's base64 is incomplete.")
    try:
        return pybase64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True), False
    except ValueError as error:
        raise Undecodable("The image's data is not valid base64.") from error


def _not_empty(data: bytes) -> bytes:
    if not data:
        raise Undecodable("The image source holds no data.")
    return data
