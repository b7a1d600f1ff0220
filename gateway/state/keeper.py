"""Keeps a link to a shared store open: opens it at the start and again whenever it went down, with growing pauses.

Decided here: the pauses (from 50 ms, doubled up to ``retry_s``, each up to a quarter longer so that replicas do not
come back in step) and what is told about them: one line when the store goes, one when it is back. A link that falls
again at once keeps its longer pauses. Not decided here: what is restored after an opening, what callers do meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gateway.ports import Clock
from gateway.state.link import Link
from gateway.state.wire import StoreUnavailable, Wire

_FIRST_PAUSE_S = 0.05
_JITTER_SHARE = 0.25
_STEADY_S = 5.0

Say = Callable[..., None]


async def _nothing_to_restore() -> None:
    """A cache has nothing to bring back."""


class Keeper:
    """Owns one ``Link``. ``say(event, **facts)`` is told of changes; ``restore`` may raise StoreUnavailable."""

    def __init__(
        self,
        wire: Wire,
        clock: Clock,
        jitter: Callable[[], float],
        say: Say,
        *,
        deadline_s: float,
        retry_s: float,
        restore: Callable[[], Awaitable[None]] = _nothing_to_restore,
        on_down: Callable[[], None] = lambda: None,
    ) -> None:
        self.link = Link(wire, deadline_s=deadline_s, on_down=self._fell)
        self._clock = clock
        self._jitter = jitter
        self._say = say
        self._retry_s = retry_s
        self._restore = restore
        self._tell_down = on_down
        self._down = asyncio.Event()
        self._first = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_away_told = False

    async def start(self, patience_s: float) -> None:
        """Begin; come back when it is open or after ``patience_s``, whichever is first. Never raises."""
        self._task = asyncio.get_running_loop().create_task(self._keep())
        try:
            async with asyncio.timeout(patience_s):
                await self._first.wait()
        except TimeoutError:
            return

    async def stop(self) -> None:
        """Close the link and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            self._task = None
        await self.link.close()

    async def _keep(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            opened_s = self._clock.now_s()
            self._down.clear()
            try:
                await self.link.open()
                await self._restore()
            except StoreUnavailable as error:
                self._away(error)
            else:
                self._back()
                await self._down.wait()
            self._first.set()
            if self._clock.now_s() - opened_s > _STEADY_S:
                pause_s = _FIRST_PAUSE_S
            await asyncio.sleep(pause_s * (1 + _JITTER_SHARE * self._jitter()))
            pause_s = min(2 * pause_s, self._retry_s)

    def _fell(self, error: StoreUnavailable) -> None:
        self._down.set()
        if error.reason != "closed":
            self._away(error)
        self._tell_down()

    def _away(self, error: StoreUnavailable) -> None:
        if not self._is_away_told:
            self._is_away_told = True
            self._say("store_away", reason=error.reason, detail=error.detail)

    def _back(self) -> None:
        if self._is_away_told:
            self._is_away_told = False
            self._say("store_back")
        self._first.set()
