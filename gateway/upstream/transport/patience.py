"""How long one exchange waits for an answer's head, and how long the answer may fall silent then.

Decided here: that either end looks to whoever waits like a failure of the connection; that the first is one timer,
begun anew whenever the engine took something, and that the second looks a few times in its limit, since a timer for
every piece of a stream was 4 % of relaying it. Not decided here: how long they are, what their end proves.
"""

from __future__ import annotations

import asyncio

from aiohttp import SocketTimeoutError
from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import StreamReader

# An answer is given up after its limit of silence and before one look more.
_LOOKS = 4


class Patience:
    """``is_over``: it has ended, and the waiting with it."""

    __slots__ = ("_handle", "_limit_s", "_loop", "_protocol", "is_over")

    def __init__(self, protocol: ResponseHandler, limit_s: float) -> None:
        self._protocol = protocol
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self.is_over = False

    def begin(self) -> None:
        """The time begins, or begins anew."""
        if self._handle is not None:
            self._handle.cancel()
        if not self.is_over:
            self._handle = self._loop.call_later(self._limit_s, self._end_wait)

    def end(self) -> None:
        """Nobody waits for the engine, for now or at all."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _end_wait(self) -> None:
        self._handle = None
        self.is_over = True
        self._protocol.set_exception(SocketTimeoutError("no response head in time"))


class Silence:
    """An answer that may fall silent for ``limit_s``, the time in which we hold the engine back not counted."""

    __slots__ = ("_content", "_handle", "_heard_bytes", "_loop", "_period_s", "_protocol", "_quiet_looks")

    def __init__(self, protocol: ResponseHandler, content: StreamReader, limit_s: float) -> None:
        self._protocol = protocol
        self._content = content
        self._period_s = limit_s / _LOOKS
        self._loop = asyncio.get_running_loop()
        self._heard_bytes = content.total_bytes
        self._quiet_looks = 0
        self._handle = self._loop.call_later(self._period_s, self._look)

    def _look(self) -> None:
        heard_bytes = self._content.total_bytes
        if heard_bytes != self._heard_bytes or self._protocol._reading_paused:  # noqa: SLF001  # aiohttp does not tell
            self._heard_bytes, self._quiet_looks = heard_bytes, 0
        else:
            self._quiet_looks += 1
        if self._quiet_looks < _LOOKS:
            self._handle = self._loop.call_later(self._period_s, self._look)
            return
        failure = SocketTimeoutError("silent within the response")
        self._protocol.set_exception(failure)
        self._content.set_exception(failure)

    def end(self) -> None:
        """The answer is over. Safe to call twice."""
        self._handle.cancel()
