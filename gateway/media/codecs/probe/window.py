"""What a parser may look at: the head and the tail of a file, or all of it. Decided here: who learns that bytes lack.

A parser reads by offset. Bytes beyond the file's end raise EndOfData (the file is cut or lies about its structure);
bytes that exist but were not handed over raise NeedMore (the caller should come back with the whole file).
"""

from __future__ import annotations


class NeedMore(Exception):
    """The answer lies in bytes that were not handed over; ``bytes_wanted`` from the file's start would do."""

    def __init__(self, bytes_wanted: int) -> None:
        self.bytes_wanted = bytes_wanted
        super().__init__(f"{bytes_wanted} bytes wanted")


class EndOfData(Exception):
    """A structure reaches beyond the end of the file."""


class Window:
    """A file of ``byte_count`` bytes of which the first ``len(head)`` and the last ``len(tail)`` are in hand."""

    __slots__ = ("byte_count", "head", "tail", "tail_start")

    def __init__(self, head: bytes, tail: bytes, byte_count: int) -> None:
        self.head = head[:byte_count]
        self.tail = tail[-byte_count:] if byte_count else b""
        self.byte_count = byte_count
        self.tail_start = byte_count - len(self.tail)

    @property
    def whole(self) -> bool:
        return len(self.head) == self.byte_count

    def read(self, offset: int, count: int) -> bytes:
        """Exactly ``count`` bytes at ``offset``. Raises EndOfData, NeedMore."""
        stop = offset + count
        if stop > self.byte_count or offset < 0:
            raise EndOfData
        if stop <= len(self.head):
            return self.head[offset:stop]
        if offset >= self.tail_start:
            return self.tail[offset - self.tail_start : stop - self.tail_start]
        raise NeedMore(self.byte_count)

    def all(self) -> bytes:
        """The whole file. Raises NeedMore when only parts are in hand."""
        if not self.whole:
            raise NeedMore(self.byte_count)
        return self.head
