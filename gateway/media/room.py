"""Memory on the heap for one request's images: how much of it one request and all requests together may hold.

Decided here: that bytes are counted as they arrive, so that many large files behind small addresses, or many large
pictures prepared from small ones, cost no more than a large body does. Not decided here: how large one file may be (the
policy), how it is fetched, what is prepared.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors import BodyMemoryExhausted, ImageTooLarge, SourceTooLarge

# What a refusal names as its rule where it is about all files of one request together.
REQUEST_RULE = "fetched_bytes_per_request"


@dataclass(frozen=True, slots=True)
class Content:
    """What a share is for, and how a request that wants more of it is refused."""

    name: str
    error: type[SourceTooLarge | ImageTooLarge]
    rule: str


FETCHED = Content("The images at these addresses", SourceTooLarge, REQUEST_RULE)
PREPARED = Content("The prepared images", ImageTooLarge, "max_prepared_bytes")


class Room:
    """What all requests may hold together. ``held_bytes`` is what they do hold."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self.held_bytes = 0

    def share(self, limit_bytes: int, content: Content = FETCHED) -> Share:
        """One request's part of the room, empty at first."""
        return Share(self, limit_bytes, content)

    def fits(self, byte_count: int) -> bool:
        return self.held_bytes + byte_count <= self._limit_bytes


class Share:
    """What one request holds, until it is closed."""

    __slots__ = ("_content", "_held_bytes", "_limit_bytes", "_room")

    def __init__(self, room: Room, limit_bytes: int, content: Content) -> None:
        self._room = room
        self._limit_bytes = limit_bytes
        self._content = content
        self._held_bytes = 0

    def take(self, byte_count: int) -> None:
        """Hold so many bytes more. Raises the content's error (this request's), BodyMemoryExhausted (everybody's)."""
        if self._held_bytes + byte_count > self._limit_bytes:
            message = f"{self._content.name} together are larger than {self._limit_bytes} bytes."
            raise self._content.error(message, rule=self._content.rule)
        if not self._room.fits(byte_count):
            raise BodyMemoryExhausted(retry_after_s=1.0)
        self._held_bytes += byte_count
        self._room.held_bytes += byte_count

    def close(self) -> None:
        """Give everything back and hold nothing any more; safe to repeat."""
        self._room.held_bytes -= self._held_bytes
        self._held_bytes = self._limit_bytes = 0
