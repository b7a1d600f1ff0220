"""Takes some frames out of a video and decodes as little of the rest as their codec allows.

A frame depends on those back to its keyframe, so packets are gathered from keyframe to keyframe, and a group in which
no frame is wanted is passed over undecoded. Pictures that follow a keyframe and are shown before it belong to the
group before. A file that states no times is decoded whole and its frames are counted.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import av
import av.error
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from gateway.errors import MediumTooLong, MediumUndecodable


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the clip runs, and until when (monotonic seconds) there is time to decode it."""

    frames_per_s: float
    until_s: float


def taken_frames(
    file: InputContainer, stream: VideoStream, indices: Sequence[int], pace: Pace
) -> Iterator[av.VideoFrame]:
    """One frame for each of ``indices`` (ascending, repetitions allowed): the first that is not shown before its time.

    Raises MediumUndecodable where more than half of them are not there, MediumTooLong when the time is over.
    """
    base = stream.time_base or Fraction(1, 1000)
    step = 1 / (pace.frames_per_s * float(base))
    start = stream.start_time or 0
    wanted = deque(start + index * step - step / 2 for index in indices)
    last: av.VideoFrame | None = None
    shown = start - step
    for frame in _decoded(file, stream, wanted):
        if time.monotonic() > pace.until_s:
            raise MediumTooLong("The video takes more time to decode than one request may take.")
        shown = shown + step if frame.pts is None else float(frame.pts)
        last = frame
        while wanted and shown >= wanted[0]:
            wanted.popleft()
            yield frame
        if not wanted:
            return
    if last is None or 2 * len(wanted) > len(indices):
        raise MediumUndecodable("The video ends long before its header says.")
    for _ in range(len(wanted)):
        yield last


def _decoded(file: InputContainer, stream: VideoStream, wanted: deque[float]) -> Iterator[av.VideoFrame]:
    """Frames in the order in which they are shown, without those of groups that hold none of ``wanted``."""
    is_running = False
    for group, end in _groups(file, stream):
        key = group[0].pts
        is_wanted = end is None or key is None or (bool(wanted) and wanted[0] < end)
        if is_wanted:
            if not is_running:
                stream.codec_context.flush_buffers()
            packets = group
        elif is_running and key is not None:
            packets = [group[0], *(packet for packet in group[1:] if packet.pts is not None and packet.pts < key)]
        else:
            packets = []
        for packet in packets:
            yield from _frames_of(stream, packet)
        is_running = is_wanted
    yield from _frames_of(stream, None)


def _frames_of(stream: VideoStream, packet: Packet[VideoStream] | None) -> list[av.VideoFrame]:
    """A damaged packet costs its own frames only."""
    try:
        return list(stream.codec_context.decode(packet))
    except av.error.InvalidDataError:
        return []
    except av.error.EOFError:
        return []


def _groups(file: InputContainer, stream: VideoStream) -> Iterator[tuple[list[Packet[VideoStream]], float | None]]:
    """Packets from one keyframe to the next, and the time at which that next one is shown (None: not known)."""
    group: list[Packet[VideoStream]] = []
    for packet in file.demux(stream):
        if packet.size == 0:
            continue
        if packet.is_keyframe and group:
            yield group, packet.pts
            group = []
        group.append(packet)
    if group:
        yield group, None
