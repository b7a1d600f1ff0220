"""Server-sent events as bytes arrive: where one ends, and what they hold, however the stream is cut.

Decided here: event boundaries and fields, as WHATWG HTML §9.2.6 defines them (lines end in LF, CR or CRLF; a comment
begins with a colon; one blank line dispatches). Not decided here: what any event means.
"""

from __future__ import annotations

from dataclasses import dataclass

_BOUNDARIES = (b"\n\n", b"\r\r", b"\n\r\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Kept of every line, however long: a comment is told by its first byte, behind a byte order mark or not.
_TOLD_BY_BYTES = 4


class EventBoundary:
    """Tells whether all bytes so far end between two events, so that a comment may be put in. Costs a few bytes."""

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        self._tail = b"\n\n"  # a stream begins at a boundary

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self._tail = (self._tail + chunk[-3:])[-3:]

    @property
    def here(self) -> bool:
        """Whether the stream now stands at a boundary."""
        return self._tail.endswith(_BOUNDARIES)


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event. ``data`` joins its data lines by LF; ``name`` is "message" unless the event says."""

    data: str
    name: str = "message"


class EventReader:
    """Bytes in, events out. An event whose lines exceed ``limit_bytes`` is dropped and counted, never kept."""

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_event_bytes",
        "_limit_bytes",
        "_line",
        "_line_bytes",
        "_name",
        "dropped_count",
    )

    def __init__(self, limit_bytes: int = 4 * 1024 * 1024) -> None:
        self._limit_bytes = limit_bytes
        self._line = bytearray()
        self._line_bytes = 0  # of the line, also where it is no longer kept
        self._event_bytes = 0
        self._data: list[str] = []
        self._name = "message"
        self._after_cr = False
        self._at_start = True
        self.dropped_count = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; return the events they complete."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[Event] = []
        for line in lines[:-1]:
            self._extend(line)
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._extend(lines[-1])
        return events

    def _extend(self, piece: bytes) -> None:
        self._line_bytes += len(piece)
        if self._event_bytes + self._line_bytes <= self._limit_bytes:
            self._line += piece
        elif len(self._line) < _TOLD_BY_BYTES:
            self._line += piece[: _TOLD_BY_BYTES - len(self._line)]

    def _end_line(self) -> Event | None:
        line, line_bytes = bytes(self._line), self._line_bytes
        self._line.clear()
        self._line_bytes = 0
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
            line_bytes = 0 if not line and line_bytes == len(_BYTE_ORDER_MARK) else line_bytes
        if not line_bytes:
            return self._dispatch()
        if not line.startswith(b":"):
            self._event_bytes += line_bytes
            self._field(line)
        return None

    def _dispatch(self) -> Event | None:
        event = Event("\n".join(self._data), self._name) if self._data else None
        if self._event_bytes > self._limit_bytes:
            self.dropped_count += 1
            event = None
        self._data, self._name, self._event_bytes = [], "message", 0
        return event

    def _field(self, line: bytes) -> None:
        if self._event_bytes > self._limit_bytes:
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value or "message"
