"""Headers and frames of real files in every container."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest
import simplejpeg

from gateway.errors import MediumTooLarge, MediumTooLong, MediumUndecodable, MediumUnsupported
from gateway.media.clip_source import sniffed
from gateway.media.video.library import PyAv
from gateway.types import ClipPlan, ClipProbe, Container, Size
from tests.media.video.clips import KINDS, LEVELS, Shape, clip, turned

LIBRARY = PyAv()
LIMIT = 10**8


def probe(file: bytes) -> ClipProbe:
    return LIBRARY.probe(file, sniffed(file[:64]), LIMIT)


def levels(frames: list[bytes]) -> list[int]:
    """The number of each frame, by the grey in its middle."""
    return [round(float(np.median(simplejpeg.decode_jpeg(frame)[:, 40:])) / LEVELS) for frame in frames]


@pytest.mark.parametrize("kind", KINDS)
def test_every_container_tells_size_rate_and_length(kind: str) -> None:
    found = probe(clip(kind))
    assert (found.size, found.frames) == (Size(96, 64), 48)
    assert found.frames_per_s == pytest.approx(24, abs=1.5)  # GIF counts hundredths of a second
    assert found.duration_s == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_the_frames_asked_for_come(kind: str) -> None:
    file = clip(kind)
    wanted = (0, 1, 11, 12, 13, 30, 47, 47)
    frames = LIBRARY.frames(file, probe(file), ClipPlan("v", Size(64, 32), wanted, 95), 30.0)
    assert [simplejpeg.decode_jpeg_header(frame)[:2] for frame in frames] == [(32, 64)] * 8
    slack = 3 if kind == "gif" else 1  # its 256 colours have eight greys, its clock has hundredths
    assert all(abs(found - index) <= slack for found, index in zip(levels(frames), wanted, strict=True))
    assert frames[-1] == frames[-2]


def test_the_same_plan_makes_the_same_bytes() -> None:
    file = clip()
    plan = ClipPlan("v", Size(64, 32), (0, 20, 40), 90)
    assert LIBRARY.frames(file, probe(file), plan, 30.0) == LIBRARY.frames(file, probe(file), plan, 30.0)


def test_a_turned_video_is_upright() -> None:
    file = turned(clip())
    found = probe(file)
    assert found.size == Size(64, 96)
    (frame,) = LIBRARY.frames(file, found, ClipPlan("v", Size(64, 96), (0,), 95), 30.0)
    pixels = simplejpeg.decode_jpeg(frame)
    assert pixels.shape[:2] == (96, 64)
    # What was the left edge is the top one: clockwise.
    assert pixels[:10].mean() > 200
    assert pixels[30:].mean() < 60


def test_the_header_is_held_against_the_limit_before_a_picture_is_decoded() -> None:
    file = clip()
    with pytest.raises(MediumTooLarge, match="96 x 64"):
        LIBRARY.probe(file, Container.MP4, 6000)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_the_files_fault(kind: str) -> None:
    file = clip(kind)
    for damaged in (file[:100], file[: len(file) // 3], file[:40] + bytes(len(file) - 40), b"\0" * 64):
        with suppress(MediumUndecodable, MediumUnsupported, MediumTooLarge):
            found = LIBRARY.probe(damaged, sniffed(file[:64]), LIMIT)
            LIBRARY.frames(damaged, found, ClipPlan("v", Size(32, 32), tuple(range(0, 48, 2)), 90), 30.0)


def test_titles_in_any_encoding_and_codecs_without_a_decoder_are_no_surprise() -> None:
    file = clip()
    assert probe(file.replace(b"isomiso2", b"isom\xff\xfe\xfd2")).frames == 48
    assert probe(clip("avi").replace(b"Lavf", b"L\xe4\xf6f")).frames == 48
    with pytest.raises((MediumUnsupported, MediumUndecodable)):
        probe(file.replace(b"avc1", b"zzzz"))


def test_random_damage_is_one_of_the_documented_errors() -> None:
    chance = random.Random(7)
    files = {kind: clip(kind) for kind in KINDS}
    for _ in range(120):
        file = bytearray(files[chance.choice(sorted(files))])
        container = sniffed(bytes(file[:64]))
        for _ in range(chance.choice((1, 3, 20))):
            file[chance.randrange(min(len(file), chance.choice((200, 4000))))] = chance.randrange(256)
        with suppress(MediumUndecodable, MediumUnsupported, MediumTooLarge, MediumTooLong):
            found = LIBRARY.probe(bytes(file), container, LIMIT)
            LIBRARY.frames(bytes(file), found, ClipPlan("v", Size(32, 32), (0, 9), 90), 0.5)


def test_most_of_the_frames_must_be_there() -> None:
    file = clip("matroska", Shape(frames=240))
    found = probe(file)
    cut = file[: len(file) // 4]
    with pytest.raises(MediumUndecodable, match="ends long before"):
        LIBRARY.frames(cut, found, ClipPlan("v", Size(32, 32), tuple(range(0, 240, 12)), 90), 30.0)


def test_time_that_is_over_ends_the_work() -> None:
    file = clip()
    with pytest.raises(MediumTooLong):
        LIBRARY.frames(file, probe(file), ClipPlan("v", Size(32, 32), (0, 40), 90), 0.0)


def test_other_codecs_and_other_files_are_not_opened() -> None:
    old = clip("avi", codec="wmv2")
    with pytest.raises(MediumUnsupported, match="wmv2"):
        LIBRARY.probe(old, Container.AVI, LIMIT)
    playlist = b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"
    for container in (Container.OTHER, Container.WAV):
        with pytest.raises(MediumUnsupported):
            LIBRARY.probe(playlist, container, LIMIT)
    with pytest.raises(MediumUndecodable):
        LIBRARY.probe(playlist, Container.MP4, LIMIT)


def test_a_size_that_changes_in_mid_stream_binds_the_decoder_too() -> None:
    file = bytearray(clip("webm", codec="libvpx"))
    start_code = b"\x9d\x01\x2a"  # of a VP8 key frame, before its sides
    at = file.rindex(start_code) + len(start_code)
    file[at : at + 4] = b"\xff\x3f\xff\x3f"
    with suppress(MediumUndecodable):
        frames = LIBRARY.frames(bytes(file), probe(bytes(file)), ClipPlan("v", Size(32, 32), (0, 40), 90), 30.0)
        assert len(frames) == 2


def test_names_that_are_no_text_and_codecs_without_a_name_are_survived() -> None:
    file = clip("matroska")
    with suppress(MediumUndecodable):
        LIBRARY.probe(file.replace(b"Lavf", b"La\xff\xfe"), Container.MATROSKA, LIMIT)
    with pytest.raises((MediumUnsupported, MediumUndecodable)):
        LIBRARY.probe(clip("mp4").replace(b"avc1", b"zzzz"), Container.MP4, LIMIT)
