"""How long one exchange waits for an answer's head: one timer, begun anew whenever the engine took something.

Decided here: that its end looks to whoever waits like a failure of the connection. Not decided here: how long it is,
and what its end proves (``exchange``).
"""

from __future__ import annotations

import asyncio

from aiohttp import SocketTimeoutError
from aiohttp.client_proto import ResponseHandler


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
