from __future__ import annotations

import pytest

from gateway.errors import Undecodable
from gateway.media.codecs.probe.gif import first_frame, probe_gif
from gateway.media.codecs.probe.window import NeedMore, Window
from gateway.types import Probe, Size
from tests.media.codecs.samples import gif, gif_frame

FULL = (0, 0, 64, 32)


def whole(data: bytes) -> Probe:
    return probe_gif(Window(data, data, len(data)))


def test_canvas_and_frames() -> None:
    found = whole(gif(gif_frame(FULL, 0), gif_frame((8, 8, 8, 8), 1, disposal=2)))
    assert (found.raster, found.frames, found.has_alpha, found.complete) == (Size(64, 32), 2, False, True)


def test_transparency_is_the_first_frames() -> None:
    assert whole(gif(gif_frame(FULL, 0, transparent=3), gif_frame(FULL, 1))).has_alpha
    assert not whole(gif(gif_frame(FULL, 0), gif_frame(FULL, 1, transparent=3))).has_alpha
    assert whole(gif(gif_frame((32, 0, 32, 32), 1))).has_alpha


def test_a_first_frame_beyond_the_canvas_enlarges_it() -> None:
    assert whole(gif(gif_frame((48, 16, 64, 32), 1))).raster == Size(112, 48)
    assert whole(gif(gif_frame(FULL, 1), gif_frame((48, 16, 64, 32), 1))).raster == Size(64, 32)


def test_a_cut_first_frame_has_its_size_all_the_same() -> None:
    cut = gif(gif_frame((0, 0, 30_000, 20_000), 1, pixels=600))[:200]
    found = whole(cut)
    assert (found.raster, found.complete) == (Size(30_000, 20_000), False), "which is what a decoder makes room for"


def test_a_missing_trailer_is_forgiven_between_blocks_only() -> None:
    data = gif(gif_frame(FULL, 0))
    assert whole(data[:-1]).complete
    assert whole(data + b"tail").complete
    assert whole(data[:-1] + b"\0\0").complete
    for cut in (2, 20, len(data) // 2):
        assert not whole(data[:-cut]).complete


def test_files_without_a_picture_are_undecodable() -> None:
    for broken in (gif(), gif(size=(0, 5)), gif(gif_frame((0, 0, 0, 4), 1)), gif()[:10], gif(trailer=b"\x21\xfe\0;")):
        with pytest.raises(Undecodable):
            whole(broken)


def test_the_number_of_blocks_is_bounded() -> None:
    comments = b"\x21\xfe" + b"\x01c" * 310_000 + b"\0"
    with pytest.raises(Undecodable, match="too many blocks"):
        whole(gif(comments, gif_frame(FULL, 0)))


def test_the_first_frame_is_found_with_its_end() -> None:
    frame = gif_frame((8, 4, 16, 16), 2, transparent=1)
    found = first_frame(gif(frame, gif_frame(FULL, 0)))
    assert (found.left, found.top, found.size, found.transparent) == (8, 4, Size(16, 16), True)
    assert found.stop == len(gif(frame, trailer=b""))
    for broken in (b"GIF89a", gif(), gif(frame)[:60]):
        with pytest.raises(Undecodable):
            first_frame(broken)


def test_more_is_asked_for_when_blocks_lie_out_of_sight() -> None:
    data = gif(*[gif_frame(FULL, 0)] * 3)
    with pytest.raises(NeedMore):
        probe_gif(Window(data[:200], data[-50:], len(data)))
