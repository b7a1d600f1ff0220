from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.sse import BOUNDARY, DATA, EventBoundary
from tests.events import Event, events_of

STREAM = (
    b"\xef\xbb\xbf: hello\n\n"
    b'data: {"a":"\xe2\x82\xac \xf0\x9f\x98\x80"}\n\n'
    b"event: error\r\ndata: one\r\ndata:two\r\n\r\n"
    b": ping\r\rdata\r\rid: 7\nretry: 3\nunknown: x\nevent: y\n\ndata:  z\n\n"
    b"data: [DONE]\n\ndata: never finished"
)
EVENTS = [
    Event('{"a":"\u20ac \U0001f600"}'),
    Event("one\ntwo", "error"),
    Event(""),
    Event(" z"),
    Event("[DONE]"),
]


def cut_at(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[first:last] for first, last in pairwise(edges)]


def test_the_reader_of_these_tests_reads_as_the_standard_does() -> None:
    assert events_of(STREAM) == EVENTS


Lines = st.sampled_from([b"data: a", b"data:", b"", b"event: e", b": c", b"x", b"data: \xe2\x82\xac"])
Ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
Streams = st.lists(st.tuples(Lines, Ends), max_size=12).map(lambda pairs: b"".join(a + b for a, b in pairs))


@given(Streams, st.lists(st.integers(0, 200), max_size=8))
def test_a_comment_at_a_boundary_changes_no_event(stream: bytes, places: list[int]) -> None:
    boundary = EventBoundary()
    chunks: list[bytes] = []
    for chunk in cut_at(stream, places):
        if boundary.here:
            chunks.append(b": keep-alive\n\n")
        boundary.feed(chunk)
        chunks.append(chunk)
    assert events_of(b"".join(chunks)) == events_of(stream)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"", True),
        (b"data: a", False),
        (b"data: a\n", False),
        (b"data: a\n\n", True),
        (b"data: a\r\n", False),
        (b"data: a\r\n\r", False),
        (b"data: a\r\n\r\n", True),
        (b"data: a\r\r", True),
        (b"data: a\n\r\n", True),
        (b"data: a\n\nd", False),
        (b"\n", True),
    ],
)
def test_boundaries(stream: bytes, expected: bool) -> None:
    whole, piecewise = EventBoundary(), EventBoundary()
    whole.feed(stream)
    for i in range(len(stream)):
        piecewise.feed(stream[i : i + 1])
    assert whole.here is expected
    assert piecewise.here is expected


@given(st.lists(Lines, max_size=12), Ends)
def test_whole_events_have_the_data_that_the_standard_reads(lines: list[bytes], end: bytes) -> None:
    stream = b"".join(line + end for line in lines)
    at, found = 0, []
    for boundary in BOUNDARY.finditer(stream):
        values = DATA.findall(stream[at : boundary.end()])
        if values:
            found.append(b"\n".join(values).decode())
        at = boundary.end()
    assert found == [event.data for event in events_of(stream)]
