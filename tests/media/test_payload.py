from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ImageTooLarge, InvalidRequest, Undecodable
from gateway.media.payload import Payload, read_text

FILE = bytes(range(256)) * 3 + b"!"  # 769 bytes: base64 with two paddings and both special characters
B64 = base64.b64encode(FILE)


def read(text: bytes, *, has_escapes: bool = False, limit: int = 10_000) -> Payload:
    return read_text(memoryview(text), has_escapes=has_escapes, max_image_bytes=limit)


def in_lines(text: bytes) -> bytes:
    return b"\n".join(text[at : at + 76] for at in range(0, len(text), 76))


def test_strict_base64_is_recognised_as_such() -> None:
    assert read(b"data:image/png;base64," + B64) == Payload(FILE, b"data:image/png;base64,", strict=True)


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text.rstrip(b"="),
        in_lines,
        lambda text: in_lines(text).replace(b"\n", b"\r\n"),
        lambda text: text + b"\n",
        lambda text: b" " + text,
        lambda text: text.translate(bytes.maketrans(b"+/", b"-_")),
        lambda text: quote(text, safe="").encode(),
        lambda text: text + b"==",
    ],
    ids=["no-padding", "lines", "crlf", "trailing", "leading", "url-safe", "percent", "too-much-padding"],
)
def test_harmless_deviations_are_read_but_not_strict(spell: Callable[[bytes], bytes]) -> None:
    payload = read(b"data:image/png;base64," + spell(B64))
    assert (payload.data, payload.strict) == (FILE, False)


def test_bare_base64_of_an_image_is_read() -> None:
    file = b"\x89PNG\r\n\x1a\n" + FILE
    assert read(base64.b64encode(file)) == Payload(file, b"", strict=True)
    assert not read(base64.b64encode(file).rstrip(b"=") + b"\n").strict


def test_a_percent_encoded_file_is_read() -> None:
    assert read(b"data:image/png," + quote(FILE).encode()).data == FILE


def test_escapes_are_resolved_the_short_way_and_the_long_way() -> None:
    text = "data:image/png;base64," + B64.decode()
    slashes = text.replace("/", "\\/").encode()
    assert read(slashes, has_escapes=True) == Payload(FILE, b"data:image/png;base64,", strict=True)
    assert read(text.replace("/", "\\u002f").encode(), has_escapes=True).data == FILE
    lines = "data:image/png;base64," + in_lines(B64).decode()
    assert read(json.dumps(lines)[1:-1].encode(), has_escapes=True).data == FILE


@pytest.mark.parametrize(
    "text",
    [
        b"data:image/png;base64," + B64[:-4] + b"A",
        b"data:image/png;base64,@@@@",
        b"data:image/png;base64,AA=A",
        b"data:image/png;base64,\xc3\xa4\xc3\xb6",
        b"data:image/png;base64," + b"AAAA" * 10 + b"=AAA",
        b"data:image/png;base64,",
        b"data:image/png;base64,====",
        b"data:image/png,",
        b"data:image/png;base64" + B64[:100],
    ],
)
def test_damaged_text_is_refused(text: bytes) -> None:
    with pytest.raises(Undecodable):
        read(text)


def test_what_is_not_inline_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        read(b"http://host/x.png")
    with pytest.raises(InvalidRequest):
        read(b"data:\\q,x", has_escapes=True)


def test_a_long_text_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(ImageTooLarge, match="at most 100"):
        read(b"data:image/png;base64," + B64, limit=100)


@given(st.binary(min_size=1, max_size=300))
def test_whatever_the_file_it_comes_back(file: bytes) -> None:
    assert read(b"data:x;base64," + base64.b64encode(file)) == Payload(file, b"data:x;base64,", strict=True)
    assert read(b"data:x;base64," + base64.urlsafe_b64encode(file).rstrip(b"=")).data == file


@given(st.binary(max_size=60), st.booleans())
def test_hostile_text_is_read_or_refused(text: bytes, has_escapes: bool) -> None:
    with contextlib.suppress(Undecodable, InvalidRequest):
        read(b"data:;base64," + text, has_escapes=has_escapes)
