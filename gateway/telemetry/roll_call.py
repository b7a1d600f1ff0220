"""Which backends answer, said once per change: an operator who mistyped a URL reads it in the log, not in a 502.

Decided here: which change is worth a line. Not decided here: whether a backend is healthy (``upstream``), how a line
looks (``log``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from gateway.telemetry.log import JsonLog
from gateway.types import BackendName, BackendView

_EVERY_S = 1.0


class RollCall:
    """Remembers who answered last. Everybody is expected to, so only absence is told at first."""

    def __init__(self, log: JsonLog) -> None:
        self._log = log
        self._absent: set[BackendName] = set()

    async def keep_calling(self, views: Callable[[], Iterable[BackendView]]) -> None:
        """Call now and every second until cancelled."""
        while True:
            self.call(views())
            await asyncio.sleep(_EVERY_S)

    def call(self, views: Iterable[BackendView]) -> None:
        """Compare with the last call and tell what changed; who is called no more is forgotten."""
        called = list(views)
        self._absent &= {view.name for view in called}
        for view in called:
            if view.healthy and view.name in self._absent:
                self._absent.discard(view.name)
                self._log.event("info", "backend_up", backend=view.name)
            elif not view.healthy and view.name not in self._absent:
                self._absent.add(view.name)
                self._log.event("warning", "backend_down", backend=view.name, url=view.written_url or view.url)
