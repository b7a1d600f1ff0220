"""Server-sent events as bytes arrive: where one ends, however the stream is cut.

Decided here: event boundaries and data lines, as WHATWG HTML §9.2.6 defines them (lines end in LF, CR or CRLF; a blank
line ends an event). Not decided here: what any event means.
"""

from __future__ import annotations

import re

# Where an event ends, in streams that end all their lines alike; and the value of each data line of one event.
BOUNDARY = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n")
DATA = re.compile(rb"(?:^|(?<=[\r\n]))data:[ ]?([^\r\n]*)")
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
