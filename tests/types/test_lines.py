"""Heads as bytes: whole, and never longer by a line than they were given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.types.lines import head_bytes

PLAIN = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=40)


@given(st.lists(PLAIN, min_size=1, max_size=8))
def test_what_is_plain_is_written_as_it_is(lines: list[str]) -> None:
    assert head_bytes(lines).decode().split("\r\n") == [*lines, "", ""]


def test_opaque_bytes_leave_as_they_came() -> None:
    raw = b"X-A: b\xe4r \xf0\x9f\x98\x80\t2"
    assert head_bytes(["GET / HTTP/1.1", raw.decode("utf-8", "surrogateescape")]).endswith(raw + b"\r\n\r\n")


@pytest.mark.parametrize("bad", ["a\r\nX-B: 1", "\r\n", "a\nb", "a\rb", "a\0b", "a\x7f", "\x1b"])
@pytest.mark.parametrize("place", [0, 1])
def test_nothing_hides_in_a_line(bad: str, place: int) -> None:
    lines = ["GET / HTTP/1.1", "X-A: 1"]
    lines[place] = bad
    with pytest.raises(ValueError, match="control character"):
        head_bytes(lines)
