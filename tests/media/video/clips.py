"""Small real videos: each frame is one grey, four levels for each frame's number, and a white mark at its left edge."""

from __future__ import annotations

import io
from dataclasses import dataclass

import av

# Demuxers' names -> FFmpeg's muxers, and the encoder that writes them here.
KINDS = {"mp4": "libx264", "mov": "mpeg4", "webm": "libvpx", "matroska": "libx264", "avi": "mpeg4", "gif": "gif"}
LEVELS = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """What is encoded; keyframes every ``group`` frames."""

    frames: int = 48
    width: int = 96
    height: int = 64
    frames_per_s: int = 24
    group: int = 12


USUAL = Shape()


def clip(kind: str = "mp4", shape: Shape = USUAL, codec: str | None = None) -> bytes:
    """Encode one; the same arguments make the same file."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=kind, options={"fflags": "+bitexact"}) as file:  # no identifiers by chance
        stream = file.add_stream(codec or KINDS[kind], rate=shape.frames_per_s)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = shape.width, shape.height
        stream.pix_fmt = "rgb8" if kind == "gif" else "yuv420p"
        stream.codec_context.thread_count = 1
        stream.codec_context.gop_size = shape.group
        stream.bit_rate = 2_000_000
        for number in range(shape.frames):
            for packet in stream.encode(_frame(number, shape).reformat(format=stream.pix_fmt)):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)
    return buffer.getvalue()


def _frame(number: int, shape: Shape) -> av.VideoFrame:
    level = number * LEVELS % 256
    frame = av.VideoFrame(shape.width, shape.height, "rgb24")
    plane = frame.planes[0]
    row = b"\xff\xff\xff" * 16 + bytes([level] * 3) * (shape.width - 16)
    plane.update((row + bytes(plane.line_size - len(row))) * shape.height)
    return frame


def turned(file: bytes) -> bytes:
    """The same MP4 with a track header that asks to be shown turned by a quarter (clockwise, as phones write it)."""
    at = file.index(b"tkhd") + 4 + 40  # version and flags, times, ids, volume: then the matrix
    quarter = b"".join(number.to_bytes(4, "big", signed=True) for number in (0, 1 << 16, 0, -(1 << 16), 0, 0))
    return file[:at] + quarter + file[at + len(quarter) :]
