from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.dialects.sse import Event, EventBoundary, EventReader

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


def read(chunks: list[bytes]) -> list[Event]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def test_events_are_read() -> None:
    assert read([STREAM]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_every_way_of_cutting_gives_the_same_events(places: list[int]) -> None:
    assert read(cut_at(STREAM, places)) == EVENTS


def test_byte_by_byte_gives_the_same_events() -> None:
    assert read([STREAM[i : i + 1] for i in range(len(STREAM))]) == EVENTS


Lines = st.sampled_from([b"data: a", b"data:", b"", b"event: e", b": c", b"x", b"data: \xe2\x82\xac"])
Ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
Streams = st.lists(st.tuples(Lines, Ends), max_size=12).map(lambda pairs: b"".join(a + b for a, b in pairs))


@given(Streams, st.lists(st.integers(0, 200), max_size=8))
def test_cutting_never_matters(stream: bytes, places: list[int]) -> None:
    assert read(cut_at(stream, places)) == read([stream])


@given(Streams, st.lists(st.integers(0, 200), max_size=8))
def test_a_comment_at_a_boundary_changes_no_event(stream: bytes, places: list[int]) -> None:
    boundary = EventBoundary()
    chunks: list[bytes] = []
    for chunk in cut_at(stream, places):
        if boundary.here:
            chunks.append(b": keep-alive\n\n")
        boundary.feed(chunk)
        chunks.append(chunk)
    assert read(chunks) == read([stream])


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


def test_a_line_of_70_kb_is_one_event() -> None:
    data = "z" * 70_000
    stream = f"data: {data}\n\n".encode()
    assert read([stream[i : i + 1_000] for i in range(0, len(stream), 1_000)]) == [Event(data)]


def test_an_oversize_event_is_dropped_and_the_next_one_read() -> None:
    reader = EventReader(limit_bytes=100)
    for _ in range(50):
        assert reader.feed(b"data: 0123456789\n") == []
    assert reader.feed(b"\ndata: ok\n\n") == [Event("ok")]
    assert reader.feed(b"data: " + b"x" * 200) == []
    assert reader.feed(b"\n\ndata: ok\n\n") == [Event("ok")]
    assert reader.dropped_count == 2


def test_comments_never_make_an_event_oversize() -> None:
    reader = EventReader(limit_bytes=100)
    for _ in range(50):
        assert reader.feed(b": waiting\n") == []
    assert reader.feed(b"data: ok\n\n") == [Event("ok")]
    assert reader.dropped_count == 0


def test_a_comment_beyond_the_limit_costs_no_event_however_it_comes() -> None:
    stream = b":" + b"x" * 40 + b"\ndata: kept\n\n"
    for pieces in ([stream], [stream[:5], stream[5:]], [stream[at : at + 1] for at in range(len(stream))]):
        reader = EventReader(limit_bytes=16)
        assert [event.data for piece in pieces for event in reader.feed(piece)] == ["kept"]
        assert reader.dropped_count == 0
