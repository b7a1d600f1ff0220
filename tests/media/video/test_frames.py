"""Which packets are decoded: groups of pictures that nobody wants are passed over."""

from __future__ import annotations

import io
import time
from collections import deque

import av
import pytest

from gateway.errors import MediumUndecodable
from gateway.media.video.frames import Pace, _decoded, taken_frames
from tests.media.video.clips import Shape, clip

PACE = Pace(24.0, time.monotonic() + 3600)


def taken(file: bytes, *indices: int) -> list[int]:
    """The numbers of the frames that came, by their times."""
    with av.open(io.BytesIO(file), "r", format="matroska") as opened:
        stream = opened.streams.video[0]
        assert stream.time_base is not None
        base = float(stream.time_base)
        return [round((frame.pts or 0) * base * 24) for frame in taken_frames(opened, stream, indices, PACE)]


def decoded(file: bytes, *times_s: float) -> int:
    """How many frames are decoded for those shown at these times."""
    with av.open(io.BytesIO(file), "r", format="matroska") as opened:
        stream = opened.streams.video[0]
        assert stream.time_base is not None
        wanted = deque(time_s / float(stream.time_base) for time_s in times_s)
        count = 0
        for frame in _decoded(opened, stream, wanted):
            count += 1
            while wanted and (frame.pts or 0) >= wanted[0]:
                wanted.popleft()
        return count


@pytest.fixture(scope="module")
def long_clip() -> bytes:
    return clip("matroska", Shape(frames=240, group=24))


def test_each_index_gets_its_frame_whatever_the_order_of_packets(long_clip: bytes) -> None:
    indices = [0, 23, 24, 25, 47, 48, 120, 239]
    assert taken(long_clip, *indices) == indices


def test_unwanted_groups_are_not_decoded(long_clip: bytes) -> None:
    assert decoded(long_clip, *range(10)) > 200
    assert decoded(long_clip, 0.0, 9.5) < 120


def test_a_file_without_a_frame_is_no_video() -> None:
    with av.open(io.BytesIO(clip("matroska", Shape(frames=2))), "r") as opened:
        stream = opened.streams.video[0]
        list(opened.demux(stream))
        with pytest.raises(MediumUndecodable):
            list(taken_frames(opened, stream, (0,), PACE))
