"""Structured logs: JSON lines on standard output, one access line per exchange, never a payload, key or query string.

Decided here: the shape of a line, and that a blocked standard output never blocks the loop (lines are written by a
thread; when it falls behind, lines are dropped and counted). Not decided here: when something is worth a line.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from typing import BinaryIO

import msgspec

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
# At about 1 KB a line, 16 MB of lines wait at most.
_WAITING_LINES = 16384
# The writer looks this often. Waking it for every line would hand the interpreter to and fro at every request.
_WRITE_EVERY_S = 0.1
_CLOSE_S = 1.0


# JSON leaves these as they are, and some who read lines end one there: a client could begin one of its own.
_OTHER_LINE_ENDS = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


class JsonLog:
    """Write events as JSON lines. Safe to call from any thread; ``close`` flushes what is waiting."""

    def __init__(self, level: str = "info", *, access: bool = True, stream: BinaryIO | None = None) -> None:
        self._level = LEVELS[level]
        self._access = access
        self._stream = stream if stream is not None else sys.stdout.buffer
        self._encode = msgspec.json.Encoder().encode
        self._lines: deque[dict[str, object]] = deque()
        self._last_said: dict[str, float] = {}
        self._unsaid: dict[str, int] = {}
        self.dropped = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def event(self, level: str, event: str, **fields: object) -> None:
        if LEVELS[level] >= self._level:
            self._put({"time": time.time(), "level": level, "event": event, **fields})

    def limited(self, level: str, event: str, *, every_s: float = 10.0, **fields: object) -> None:
        """The same, but at most once in ``every_s`` for one kind of event; the next tells how many were ``unsaid``."""
        now = time.monotonic()
        if now - self._last_said.get(event, -every_s) < every_s:
            self._unsaid[event] = self._unsaid.get(event, 0) + 1
            return
        self._last_said[event] = now
        unsaid = self._unsaid.pop(event, 0)
        self.event(level, event, **fields, **({"unsaid": unsaid} if unsaid else {}))

    def access(self, fields: dict[str, object]) -> None:
        if self._access:
            self._put(fields)

    def configure(self, level: str, *, access: bool) -> None:
        """Take over reloadable settings."""
        self._level = LEVELS[level]
        self._access = access

    def _put(self, fields: dict[str, object]) -> None:
        if len(self._lines) < _WAITING_LINES:
            self._lines.append(fields)
        else:
            self.dropped += 1

    def _write(self) -> None:
        while not self._ended.wait(_WRITE_EVERY_S):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines:
            return
        try:
            text = b"".join([self._line(line) for line in lines])
            if not text.isascii():  # which costs a two-hundredth of a search, and nearly all lines are
                for spelt, escaped in _OTHER_LINE_ENDS:
                    text = text.replace(spelt, escaped)
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self.dropped += len(lines)

    def _line(self, fields: dict[str, object]) -> bytes:
        """One line. What clients send may hold half surrogate pairs, and one such line must not cost the others."""
        try:
            return self._encode(fields) + b"\n"
        except (TypeError, ValueError):
            return json.dumps(fields, default=repr).encode("ascii") + b"\n"

    def close(self) -> None:
        """Write what is waiting; a blocked standard output keeps the process for a second at most."""
        self._ended.set()
        self._thread.join(timeout=_CLOSE_S)
