"""Large bodies on their way into shared memory, and who makes room when it is full: those that hardly move.

Decided here: a body that is declared large holds all its room from the first byte on, so that it is written once and
never moved. A client that then drips, or stops, holds that room against everybody else. While there is enough, it may;
once another body finds none, bodies that have come slower than ``SLOW_BYTES_PER_S`` so far are given up, the slowest
first, until there is enough, or none where they all together would not do. Not decided here: how long silence is borne
(the settings), how a body is read (``body``).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from gateway.errors import BodyMemoryExhausted
from gateway.media.shm import Extent, Slab

# A photograph of 3 MB in three quarters of a minute; a body that has just begun is not judged.
SLOW_BYTES_PER_S = 64 * 1024
GRACE_S = 2.0
# Rounds of the loop after which a body that was given up has let go of its room.
_ROUNDS = 16


@dataclass(slots=True, eq=False)
class Upload:
    """One body being read. ``patience`` bounds the wait for its next piece, while it waits."""

    held_bytes: int
    begun_s: float
    received_bytes: int = 0
    patience: asyncio.Timeout | None = None
    is_given_up: bool = False

    def pace(self, now_s: float) -> float:
        """Bytes a second since it began."""
        return self.received_bytes / max(now_s - self.begun_s, 1e-9)

    def check(self) -> None:
        """Raises BodyMemoryExhausted once it was given up."""
        if self.is_given_up:
            raise BodyMemoryExhausted(
                f"The body came at less than {SLOW_BYTES_PER_S} bytes a second while others needed its memory.",
                retry_after_s=1.0,
            )


@dataclass(slots=True)
class Uploads:
    """All of them, and the memory they lie in."""

    slab: Slab
    grace_s: float = GRACE_S
    _open: set[Upload] = field(default_factory=set)

    def begin(self) -> Upload:
        """A body whose room is about to be taken; ``end`` it whatever happens."""
        upload = Upload(0, asyncio.get_running_loop().time())
        self._open.add(upload)
        return upload

    def end(self, upload: Upload) -> None:
        self._open.discard(upload)

    async def room(self, upload: Upload, byte_count: int) -> Extent:
        """Memory for the body, at the cost of slow ones if need be. Raises BodyMemoryExhausted."""
        extent = self.slab.take(byte_count)
        if extent is None and self._give_up_slow_ones(upload, byte_count):
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)
                extent = self.slab.take(byte_count)
                if extent is not None:
                    break
        if extent is None:
            raise BodyMemoryExhausted(retry_after_s=1.0)
        upload.held_bytes = byte_count
        return extent

    def _give_up_slow_ones(self, newcomer: Upload, byte_count: int) -> bool:
        now_s = asyncio.get_running_loop().time()
        slow = [
            upload
            for upload in self._open
            if upload is not newcomer
            and upload.patience is not None
            and now_s - upload.begun_s >= self.grace_s
            and upload.pace(now_s) < SLOW_BYTES_PER_S
        ]
        if sum(upload.held_bytes for upload in slow) < byte_count:
            return False
        freed_bytes = 0
        for upload in sorted(slow, key=lambda upload: upload.pace(now_s)):
            if freed_bytes >= byte_count:
                break
            freed_bytes += upload.held_bytes
            upload.is_given_up = True
            assert upload.patience is not None
            upload.patience.reschedule(now_s)
        return True
