"""What a file is, by its first bytes; the client's media type is never asked. Decided here: the list of names."""

from __future__ import annotations

from gateway.types import ImageFormat

# Enough for a document type and a comment before the <svg> element.
TEXT_BYTES = 1_024
_PREFIXES: tuple[tuple[bytes, ImageFormat], ...] = (
    (b"\xff\xd8", ImageFormat.JPEG),
    (b"\x89PNG\r\n\x1a\n", ImageFormat.PNG),
    (b"GIF87a", ImageFormat.GIF),
    (b"GIF89a", ImageFormat.GIF),
    (b"II\x2a\0", ImageFormat.TIFF),
    (b"MM\0\x2a", ImageFormat.TIFF),
    (b"II\x2b\0", ImageFormat.TIFF),
    (b"MM\0\x2b", ImageFormat.TIFF),
    (b"\0\0\0\x0cjP  \r\n\x87\n", ImageFormat.JPEG2000),
    (b"\xff\x4f\xff\x51", ImageFormat.JPEG2000),
    (b"\0\0\1\0", ImageFormat.ICO),
    (b"%PDF-", ImageFormat.PDF),
    (b"BM", ImageFormat.BMP),
)
# Brands of ISO base media files (ISO/IEC 14496-12) that hold still pictures.
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_OTHER_KINDS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\x0a", "JPEG XL"),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
    (b"8BPS", "Photoshop"),
    (b"\0\0\2\0", "Windows cursor"),
    (b"\x1a\x45\xdf\xa3", "Matroska or WebM video"),
    (b"qoif", "QOI"),
    (b"FWS", "Flash"),
    (b"v/1\x01", "OpenEXR"),
    (b"#?RADIANCE", "Radiance HDR"),
    (b"%!PS", "PostScript"),
    (b"DDS ", "DirectDraw surface"),
)


def sniff(head: bytes) -> ImageFormat | None:
    """The format, or ``None`` where the first bytes are not those of a format the gateway has a name for."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return ImageFormat.WEBP
    if head[4:8] == b"ftyp":
        return _iso_media(head)
    for prefix, found in _PREFIXES:
        if head.startswith(prefix):
            return found
    return ImageFormat.SVG if _is_svg(head) else None


def _iso_media(head: bytes) -> ImageFormat | None:
    brands = {head[8:12], *(head[at : at + 4] for at in range(16, min(len(head), 64), 4))}
    if brands & _AVIF_BRANDS:
        return ImageFormat.AVIF
    return ImageFormat.HEIC if brands & _HEIC_BRANDS else None


def _is_svg(head: bytes) -> bool:
    text = _text_start(head)
    return text.startswith(b"<svg") or (text.startswith((b"<?xml", b"<!--", b"<!doctype svg")) and b"<svg" in text)


def _text_start(head: bytes) -> bytes:
    return head[:TEXT_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip().lower()


def other_kind(head: bytes) -> str | None:
    """A name for what is clearly another kind of picture, video or document; ``None`` if nobody can tell."""
    for prefix, name in _OTHER_KINDS:
        if head.startswith(prefix):
            return name
    return "ISO media (video)" if head[4:8] == b"ftyp" else None


def looks_like_text(head: bytes) -> bool:
    """Whether the bytes are text (an HTML error page, JSON, base64 of something else) rather than a file."""
    start = head[:TEXT_BYTES]
    return bool(start) and all(byte >= 0x20 or byte in b"\t\n\r\f\x1b" for byte in start)
