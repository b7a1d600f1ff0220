"""Structured logs: JSON lines on standard output, one access line per exchange, never a payload, key or query string.

Decided here: the shape of a line, and that a blocked standard output never blocks the loop (lines are written by a
thread; when it falls behind, lines are dropped and counted). Not decided here: when something is worth a line.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from typing import BinaryIO

import msgspec

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
# At about 1 KB a line, 16 MB of lines wait at most.
_QUEUE_LINES = 16384


class JsonLog:
    """Write events as JSON lines. Safe to call from any thread; ``close`` flushes what is waiting."""

    def __init__(self, level: str = "info", *, access: bool = True, stream: BinaryIO | None = None) -> None:
        self._level = LEVELS[level]
        self._access = access
        self._stream = stream if stream is not None else sys.stdout.buffer
        self._encode = msgspec.json.Encoder().encode
        self._lines: queue.Queue[dict[str, object] | None] = queue.Queue(_QUEUE_LINES)
        self._last_said: dict[str, float] = {}
        self.dropped = 0
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def event(self, level: str, event: str, **fields: object) -> None:
        if LEVELS[level] >= self._level:
            self._put({"time": time.time(), "level": level, "event": event, **fields})

    def limited(self, level: str, event: str, *, every_s: float = 10.0, **fields: object) -> None:
        """The same, but at most once in ``every_s`` for one kind of event."""
        now = time.monotonic()
        if now - self._last_said.get(event, -every_s) >= every_s:
            self._last_said[event] = now
            self.event(level, event, **fields)

    def access(self, fields: dict[str, object]) -> None:
        if self._access:
            self._put(fields)

    def configure(self, level: str, *, access: bool) -> None:
        """Take over reloadable settings."""
        self._level = LEVELS[level]
        self._access = access

    def _put(self, fields: dict[str, object]) -> None:
        try:
            self._lines.put_nowait(fields)
        except queue.Full:
            self.dropped += 1

    def _write(self) -> None:
        while (first := self._lines.get()) is not None:
            lines = [first]
            ended = False
            while not self._lines.empty():
                fields = self._lines.get_nowait()
                if fields is None:
                    ended = True
                    break
                lines.append(fields)
            try:
                self._stream.write(b"".join(self._encode(line) + b"\n" for line in lines))
                self._stream.flush()
            except (OSError, ValueError):
                self.dropped += len(lines)
            if ended:
                return

    def close(self) -> None:
        self._lines.put(None)
        self._thread.join(timeout=2)
