from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Undecodable
from gateway.media.codecs.probe.boxes import Box, boxes, content
from gateway.media.codecs.probe.window import Window
from tests.media.codecs.samples import box


def walked(data: bytes) -> list[Box]:
    return list(boxes(Window(data, data, len(data)), 0, len(data)))


def test_boxes_follow_each_other() -> None:
    data = box(b"aaaa", b"12") + box(b"bbbb", b"") + struct.pack(">I4sQ", 1, b"cccc", 20) + b"four"
    assert [(each.kind, each.stop - each.start, each.fits) for each in walked(data)] == [
        (b"aaaa", 2, True),
        (b"bbbb", 0, True),
        (b"cccc", 4, True),
    ]


def test_a_box_without_length_goes_to_the_end() -> None:
    assert walked(struct.pack(">I4s", 0, b"last") + b"rest") == [Box(b"last", 8, 12)]


def test_a_box_that_reaches_beyond_is_cut_and_says_so() -> None:
    data = struct.pack(">I4s", 100, b"long") + b"short"
    assert walked(data) == [Box(b"long", 8, 13, fits=False)]
    assert content(Window(data, data, len(data)), walked(data)[0], 3) == b"sho"


def test_lengths_without_sense_end_the_walk() -> None:
    assert walked(struct.pack(">I4s", 4, b"tiny") + bytes(20)) == []


def test_a_walk_is_bounded() -> None:
    with pytest.raises(Undecodable, match="too many boxes"):
        walked(box(b"free", b"") * 8_200)


@given(st.binary(max_size=200))
def test_any_bytes_end(data: bytes) -> None:
    assert len(walked(data)) <= 25
