"""What a worker says of clips, with and without the library."""

from __future__ import annotations

import io
from base64 import b64encode

import pytest
from PIL import Image

from gateway.errors import (
    ImageTooLarge,
    InvalidRequest,
    MediumTooLarge,
    MediumUndecodable,
    MediumUnsupported,
    Undecodable,
)
from gateway.media import clip_work, video
from gateway.media.clip_source import ClipFile, read_clip
from gateway.media.messages import Bytes, ExamineClip, PrepareClip
from gateway.types import ClipPlan, ClipProbe, Container, MediumKind, Size
from tests.media.video.clips import clip

LIBRARY = video.load()


def jpeg(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, "JPEG")
    return buffer.getvalue()


def frames(*sizes: tuple[int, int]) -> ClipFile:
    parts = b",".join(b64encode(jpeg(*size)) for size in sizes)
    text = b"data:video/jpeg;base64," + parts
    return read_clip(memoryview(text), has_escapes=False, is_bare=False, max_bytes=10**6)


def test_words_are_about_the_kind_of_medium() -> None:
    for kind, noun in ((MediumKind.VIDEO, "video"), (MediumKind.AUDIO, "sound")):
        assert clip_work.about_clip(ImageTooLarge(), kind, 5).message == f"The {noun} has more than 5 bytes."
        worded = clip_work.about_clip(Undecodable("The image's data is not valid base64."), kind, 5)
        assert isinstance(worded, MediumUndecodable)
        assert worded.message == f"The {noun}'s data is not valid base64."
        assert "image" not in clip_work.about_clip(InvalidRequest("The image source."), kind, 5).message
    kept = MediumUnsupported()
    assert clip_work.about_clip(kept, MediumKind.VIDEO, 5) is kept


def test_without_the_library_a_video_is_bytes_with_a_flaw() -> None:
    file = ClipFile(clip(), Container.MP4)
    probe, flaw = clip_work.probed(file, MediumKind.VIDEO, 10**8, None)
    assert (probe, flaw) == (ClipProbe(Container.MP4), "medium_unsupported")
    probe, flaw = clip_work.probed(file, MediumKind.VIDEO, 10**8, LIBRARY)
    assert (probe.frames, flaw) == (48, "")
    assert clip_work.probed(ClipFile(b"?" * 99, Container.OTHER), MediumKind.VIDEO, 10**8, LIBRARY)[1]


def test_a_list_of_frames_needs_no_library_but_one_size() -> None:
    probe, flaw = clip_work.probed(frames((64, 32), (64, 32)), MediumKind.VIDEO, 10**8, None)
    assert (probe.size, probe.frames, flaw) == (Size(64, 32), 2, "")
    assert clip_work.probed(frames((64, 32), (32, 64)), MediumKind.VIDEO, 10**8, None)[1] == "medium_undecodable"
    with pytest.raises(MediumTooLarge):
        clip_work.probed(frames((64, 32)), MediumKind.VIDEO, 1000, None)


def test_a_source_is_read_within_its_limit() -> None:
    file = b"RIFF\0\0\0\0WAVE" + bytes(100)
    where = Bytes(0, len(file), is_text=False, has_escapes=False)
    for limit in (1000, 50):
        question = ExamineClip(where, MediumKind.AUDIO, False, b"k" * 32, limit, 10**8)
        if limit > len(file):
            assert clip_work.read(question, memoryview(file)).container is Container.WAV
        else:
            with pytest.raises(MediumTooLarge, match="sound"):
                clip_work.read(question, memoryview(file))


def test_a_plan_without_frames_delivers_the_file() -> None:
    where = Bytes(0, 0, is_text=False, has_escapes=False)
    file = ClipFile(clip(), Container.MP4)
    probe, _ = clip_work.probed(file, MediumKind.VIDEO, 10**8, LIBRARY)
    question = PrepareClip(where, MediumKind.VIDEO, False, ClipPlan("v"), probe, 10**8, 10.0)
    assert clip_work.prepared(question, file, None) == ("video/mp4", [file.data], Size(0, 0))
    sampled = PrepareClip(where, MediumKind.VIDEO, False, ClipPlan("v", Size(32, 32), (0, 9)), probe, 10**8, 10.0)
    media_type, files, size = clip_work.prepared(sampled, file, LIBRARY)
    assert (media_type, len(files), size) == ("video/jpeg", 2, Size(32, 32))
    with pytest.raises(MediumUnsupported):
        clip_work.prepared(sampled, file, None)
