"""A desk with few places: who finds none free is sent away at once, so that nothing piles up behind it.

Decided here: that a place is taken before any byte of a request's body is read, and given back whatever becomes of it.
Not decided here: how many places there are. All on one loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Busy(Exception):
    """All places are taken."""


class Desk:
    """Places for so many at once."""

    def __init__(self, places: int) -> None:
        self._free = places

    @contextmanager
    def place(self) -> Iterator[None]:
        """Raises Busy."""
        if self._free == 0:
            raise Busy
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1
