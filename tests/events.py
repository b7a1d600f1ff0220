"""Server-sent events as WHATWG HTML §9.2.6 reads them, step by step over a whole stream: what tests hold answers to."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event. ``data`` joins its data lines by LF; ``name`` is "message" unless the event says."""

    data: str
    name: str = "message"


def events_of(stream: bytes) -> list[Event]:
    """The events of a stream; one that no blank line ends is none."""
    lines = re.split(rb"\r\n|\r|\n", stream)[:-1]  # what no line end closes is discarded
    found: list[Event] = []
    buffer: list[str] = []
    name = ""
    for number, raw in enumerate(lines):
        text = (raw.removeprefix(b"\xef\xbb\xbf") if number == 0 else raw).decode("utf-8", "replace")
        if not text:
            if buffer:
                found.append(Event("\n".join(buffer), name or "message"))
            buffer, name = [], ""
            continue
        field, colon, value = text.partition(":")
        value = value.removeprefix(" ")
        if not field and colon:
            continue
        if field == "data":
            buffer.append(value)
        elif field == "event":
            name = value
    return found
