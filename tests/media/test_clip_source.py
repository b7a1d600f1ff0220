from __future__ import annotations

from base64 import b64encode

import pytest

from gateway.errors import GatewayError, MediumUndecodable
from gateway.media.clip_source import MAX_FRAMES, read_clip, sniffed
from gateway.types import Container

FILE = b"\0\0\0\x18ftypisom" + bytes(40)


def read(text: bytes, *, is_bare: bool = False, limit: int = 10_000) -> tuple[bytes, Container, int]:
    found = read_clip(memoryview(text), has_escapes=b"\\" in text, is_bare=is_bare, max_bytes=limit)
    return found.data, found.container, len(found.parts)


def test_every_spelling_of_a_file() -> None:
    base64 = b64encode(FILE)
    for text in (b"data:video/mp4;base64," + base64, b" DATA:;BASE64," + base64, b"data:video\\/mp4;base64," + base64):
        assert read(text) == (FILE, Container.MP4, 0)
    assert read(base64, is_bare=True) == (FILE, Container.MP4, 0)


def test_frames_are_a_list_of_files() -> None:
    text = b"data:video/jpeg;base64," + b",".join(b64encode(part) for part in (b"abc", b"de"))
    assert read(text) == (b"abcde", Container.FRAMES, 2)
    with pytest.raises(MediumUndecodable, match="frames"):
        read(b"data:video/jpeg;base64," + b"QQ==," * (MAX_FRAMES + 1), limit=10**6)


def test_what_is_no_file_or_too_much_of_one_is_refused() -> None:
    for text in (b"hello", b"file:///etc/passwd", b"data:video/mp4;base64,%%%", b"data:video/mp4;base64,", b""):
        with pytest.raises(GatewayError):
            read(text)
    for text in (b"data:video/mp4;base64," + b64encode(FILE), b"data:video/jpeg;base64," + b64encode(FILE)):
        with pytest.raises(GatewayError):
            read(text, limit=20)


@pytest.mark.parametrize(
    ("head", "container"),
    [
        (b"\0\0\0\x14ftypqt  ", Container.MOV), (b"\0\0\0\x08wide", Container.MOV),
        (b"\x1a\x45\xdf\xa3\x9fB\x82\x84webm", Container.WEBM), (b"\x1a\x45\xdf\xa3\x9f", Container.MATROSKA),
        (b"RIFF\0\0\0\0AVI LIST", Container.AVI), (b"RIFF\0\0\0\0WAVEfmt ", Container.WAV),
        (b"GIF89a", Container.GIF), (b"OggS\0", Container.OGG), (b"fLaC\0", Container.FLAC), (b"ID3\4", Container.MP3),
        (b"\xff\xfb\x90\x00", Container.MP3), (b"\xff\xd8\xff\xe0", Container.OTHER), (b"", Container.OTHER),
        (b"RIFF\0\0\0\0WEBP", Container.OTHER),
    ],
)  # fmt: skip
def test_containers_by_their_first_bytes(head: bytes, container: Container) -> None:
    assert sniffed(head) is container
