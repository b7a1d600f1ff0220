"""Server-sent events as bytes arrive: where one ends, however the stream is cut.

Decided here: event boundaries, as WHATWG HTML §9.2.6 defines them (lines end in LF, CR or CRLF; a blank line ends an
event). Not decided here: what any event holds or means.
"""

from __future__ import annotations

_BOUNDARIES = (b"\n\n", b"\r\r", b"\n\r\n")


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
