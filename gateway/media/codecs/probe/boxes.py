"""Boxes of ISO base media files (ISO/IEC 14496-12 §4.2) and of JPEG 2000 (ISO/IEC 15444-1 Annex I), which are the same.

A box is a length, four letters, and what it holds. Walks are bounded; a box that reaches beyond what holds it is cut
there, and ``fits`` says so.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.errors import Undecodable
from gateway.media.codecs.probe.window import EndOfData, Window

_MAX_BOXES = 8_192


@dataclass(frozen=True, slots=True)
class Box:
    """One box: its letters and where its content lies. ``fits``: it ends inside what holds it."""

    kind: bytes
    start: int
    stop: int
    fits: bool = True


def boxes(window: Window, start: int, stop: int) -> Iterator[Box]:
    """The boxes between two offsets, in order. Raises Undecodable for too many, NeedMore."""
    position = start
    for _ in range(_MAX_BOXES):
        if position + 8 > stop:
            return
        try:
            length, kind = struct.unpack(">I4s", window.read(position, 8))
            header_bytes = 8
            if length == 1:
                (length,) = struct.unpack(">Q", window.read(position + 8, 8))
                header_bytes = 16
        except EndOfData:
            return
        end = stop if length == 0 else position + length
        if end < position + header_bytes:
            return
        yield Box(kind, position + header_bytes, min(end, stop), fits=end <= stop)
        position = end
    raise Undecodable("The image's file has too many boxes.")


def content(window: Window, box: Box, limit_bytes: int) -> bytes:
    """A box's content, at most the limit. Raises EndOfData, NeedMore."""
    return window.read(box.start, min(box.stop - box.start, limit_bytes))
