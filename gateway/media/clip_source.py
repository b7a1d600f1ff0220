"""From the text of a video's or sound's source to its file, and what kind of file that is by its first bytes.

Decided here: which containers are known, and that a source may be a data URL, bare base64 (``input_audio``) or vLLM's
list of JPEG frames. Not decided here: what is inside (``video``, ``sound``). Runs in image workers only: megabytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import MediumUndecodable
from gateway.media.payload import decode_base64, read_text, unescape
from gateway.media.sources import HEAD_BYTES, parse_data_url_head
from gateway.types import Container

_FRAMES_HEAD = b"data:video/jpeg"
# More frames than any model takes; a longer list is no clip but an attempt.
MAX_FRAMES = 4096


@dataclass(frozen=True, slots=True)
class ClipFile:
    """``data`` is the file, or for frames the first of ``parts``; ``parts`` are the JPEG files of a list of frames."""

    data: bytes
    container: Container
    parts: tuple[bytes, ...] = ()


def read_clip(text: memoryview, *, has_escapes: bool, is_bare: bool, max_bytes: int) -> ClipFile:
    """Decode one source string as it stands in the body.

    Raises InvalidRequest, Undecodable, MediumUndecodable, ImageTooLarge (more bytes than allowed).
    """
    if has_escapes:
        text = memoryview(unescape(bytes(text)))
    if is_bare:
        data, _ = decode_base64(text, max_bytes)
        return of_file(data)
    head = bytes(text[:HEAD_BYTES])
    if head.lstrip()[: len(_FRAMES_HEAD)].lower() == _FRAMES_HEAD:
        return _frames(text, parse_data_url_head(head).payload_start, max_bytes)
    if head.lstrip()[:5].lower() != b"data:":
        raise MediumUndecodable("The source is neither a data URL nor an http(s) URL.")
    return of_file(read_text(text, has_escapes=False, max_image_bytes=max_bytes).data)


def of_file(data: bytes) -> ClipFile:
    """A file by its first bytes."""
    return ClipFile(data, sniffed(data[:64]))


def _frames(text: memoryview, start: int, max_bytes: int) -> ClipFile:
    pieces = bytes(text[start:]).split(b",", MAX_FRAMES)
    if len(pieces) > MAX_FRAMES:
        raise MediumUndecodable(f"The video has more than {MAX_FRAMES} frames.")
    parts, left = [], max_bytes
    for piece in pieces:
        part, _ = decode_base64(memoryview(piece), left)
        left -= len(part)
        parts.append(part)
    return ClipFile(b"".join(parts), Container.FRAMES, tuple(parts))


def sniffed(head: bytes) -> Container:  # one line per kind of file
    """The container by its magic bytes; ``other`` for anything else."""
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
        is_quicktime = head[4:8] != b"ftyp" or head[8:10] == b"qt"
        return Container.MOV if is_quicktime else Container.MP4
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return Container.WEBM if b"webm" in head else Container.MATROSKA
    if head[:4] == b"RIFF":
        return {b"AVI ": Container.AVI, b"WAVE": Container.WAV}.get(head[8:12], Container.OTHER)
    if head[:4] == b"GIF8":
        return Container.GIF
    if head[:4] == b"OggS":
        return Container.OGG
    if head[:4] == b"fLaC":
        return Container.FLAC
    if head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 0x06):
        return Container.MP3
    return Container.OTHER
