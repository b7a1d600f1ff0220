"""The library itself: opens a file without letting FFmpeg choose or open anything, reads its header, hands out frames.

Counts and rates are read as OpenCV's FFmpeg reader does (``CvCapture_FFMPEG::get_total_frames`` and ``get_fps``), with
which vLLM opens files: so a clip that is passed as a file is counted as the engine will count it.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager

import av
import av.error
import av.logging
from av.codec.context import CodecContext
from av.container import InputContainer
from av.video.stream import VideoStream

from gateway.errors import MediumTooLarge, MediumUndecodable, MediumUnsupported
from gateway.media.codecs.frame_jpeg import encode_frame
from gateway.media.video.frames import Pace, taken_frames
from gateway.types import ClipPlan, ClipProbe, Container, Size

# FFmpeg's demuxers by what was sniffed. `mov` opens no external references unless told to.
_DEMUXERS = {
    Container.MP4: "mov",
    Container.MOV: "mov",
    Container.WEBM: "matroska",
    Container.MATROSKA: "matroska",
    Container.AVI: "avi",
    Container.GIF: "gif",
}
# What phones, browsers, screen recorders and cameras write. The rest of FFmpeg's decoders is old, rare and little read.
_CODECS = frozenset({"h264", "hevc", "vp8", "vp9", "av1", "libdav1d", "mpeg4", "mjpeg", "gif"})

# Decoders work in whole blocks: a frame in memory is larger than the picture it shows.
_ALIGNMENT_PIXELS = 1 << 20

av.logging.set_level(av.logging.PANIC)  # FFmpeg writes about every odd file on standard error


class PyAv:
    """``gateway.media.video.VideoLibrary``."""

    def probe(self, data: bytes, container: Container, max_pixels: int) -> ClipProbe:
        with _opened(data, container, max_pixels) as (file, stream):
            codec = stream.codec_context
            _check_pixels(codec.width, codec.height, max_pixels)
            rate = stream.guessed_rate or stream.average_rate
            frames_per_s = float(rate) if rate else 0.0
            duration_s = _duration_s(file, stream)
            frames = stream.frames or int((duration_s or 0.0) * frames_per_s + 0.5)
            first = next(file.decode(stream), None)
            if first is None:
                raise MediumUndecodable("The video has no picture.")
            _check_pixels(first.width, first.height, max_pixels)
            size = Size(first.width, first.height)
            if first.rotation % 180:
                size = Size(size.height, size.width)
            if frames_per_s <= 0:
                raise MediumUndecodable("The video does not say how many frames a second it has.")
            if duration_s is None and frames:
                duration_s = frames / frames_per_s
            return ClipProbe(container, duration_s, size, max(1, frames), frames_per_s, codec.name)

    def frames(self, data: bytes, probe: ClipProbe, plan: ClipPlan, deadline_s: float) -> list[bytes]:
        assert plan.target is not None
        until_s = time.monotonic() + deadline_s
        made: dict[int, bytes] = {}
        files: list[bytes] = []
        limit = (probe.size or plan.target).pixels
        with _opened(data, probe.container, limit) as (file, stream):
            for frame in taken_frames(file, stream, plan.indices, Pace(probe.frames_per_s, until_s)):
                if id(frame) not in made:  # a frame that is taken twice comes twice in a row
                    _check_pixels(frame.width, frame.height, limit)
                    made = {id(frame): encode_frame(_upright(frame, plan.target), plan.jpeg_quality)}
                files.append(made[id(frame)])
        return files


# One grey pixel, shown once.
_REHEARSED = bytes.fromhex("47494638396101000100800000808080ffffff21f904000a0000002c00000000010001000002024401003b")


def rehearse(library: PyAv) -> None:
    """Use everything once: Python's part of the library loads modules late, and later no file can be opened."""
    probe = library.probe(_REHEARSED, Container.GIF, 1)
    library.frames(_REHEARSED, probe, ClipPlan("", Size(16, 16), (0, 0)), 60.0)


@contextmanager
def _opened(data: bytes, container: Container, max_pixels: int) -> Iterator[tuple[InputContainer, VideoStream]]:
    """The file and its first moving picture, with every failure of FFmpeg's as ours.

    ``max_pixels`` also binds FFmpeg itself, whose decoders follow a size that changes in mid-stream and whose search
    for streams decodes before anybody can look.
    """
    demuxer = _DEMUXERS.get(container)
    if demuxer is None:
        raise MediumUnsupported("Videos of this format cannot be read here.")
    bounds = {"max_pixels": str(2 * max_pixels + _ALIGNMENT_PIXELS)}
    try:
        with av.open(io.BytesIO(data), "r", format=demuxer, metadata_errors="replace", options=bounds) as file:
            stream = _first_video(file)
            stream.codec_context.thread_count = 1
            stream.codec_context.options = bounds
            yield file, stream
    except av.error.FFmpegError as error:
        raise MediumUndecodable("The video is damaged or cut off.", detail=type(error).__name__) from None


def _first_video(file: InputContainer) -> VideoStream:
    """Raises MediumUnsupported. Cover pictures are no videos."""
    for stream in file.streams.video:
        if "ATTACHED_PIC" in str(stream.disposition).upper():
            continue
        codec: CodecContext | None = stream.codec_context  # none where FFmpeg does not know the codec's name at all
        if codec is None or codec.name not in _CODECS:
            raise MediumUnsupported(f"Videos in the codec {codec.name if codec else 'unknown'} are not read here.")
        return stream
    raise MediumUnsupported("The file has no video in it.")


def _check_pixels(width: int, height: int, max_pixels: int) -> None:
    if width * height > max_pixels:
        raise MediumTooLarge(f"The video has {width} x {height} pixels; at most {max_pixels} are accepted.")


def _duration_s(file: InputContainer, stream: VideoStream) -> float | None:
    if file.duration:
        return file.duration / av.time_base
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return None


def _upright(frame: av.VideoFrame, target: Size) -> object:
    """RGB samples of the frame in the target's size, turned as the file asks; FFmpeg's bicubic filter."""
    turns = round(frame.rotation / 90) % 4  # counter-clockwise
    width, height = (target.height, target.width) if turns % 2 else (target.width, target.height)
    pixels = frame.to_ndarray(format="rgb24", width=width, height=height, interpolation="BICUBIC")
    if turns == 1:
        return pixels.transpose(1, 0, 2)[::-1]
    if turns == 2:
        return pixels[::-1, ::-1]
    if turns == 3:
        return pixels.transpose(1, 0, 2)[:, ::-1]
    return pixels
