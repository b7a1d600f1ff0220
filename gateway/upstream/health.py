"""Keep the record of one backend true: is it up, what is it, how busy is it. One task per backend.

A backend that is up is probed every ``probe_interval_s`` by the engine's own cheap probe, and asked for its load; one
that is down, or against which something is to be said, every ``revival_interval_s``, so that it is used again well
within two seconds of its return. A refused connection is proof; a slow or odd answer is believed the second time.
Coming back means a restart: facts are asked anew and what was believed of its caches is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx

from gateway.ports import Clock
from gateway.types import BackendName
from gateway.upstream.discover import Unanswered, discover, fetch
from gateway.upstream.engines.contract import Engine
from gateway.upstream.registry import Backend
from gateway.upstream.scrape import scrape
from gateway.upstream.settings import BackendSettings, UpstreamSettings

_NO_SUCH_ROUTE = (404, 405)
# A look takes one to five requests and so up to 5 ms of the loop: in fleets of more than 50 nobody in doubt is looked
# at as often as the interval says, and requests go to the others meanwhile.
LOOKS_PER_S = 100
# Nor those that are well: a look at a page of metrics takes some 5 ms of the loop, and responses tell the load.
QUIET_LOOKS_PER_S = 25


async def alive(client: httpx.AsyncClient, settings: BackendSettings, engine: Engine) -> bool:
    """Whether the engine calls itself healthy, by the first of its probes that it has.

    A server that has none of them but answers is alive. Raises Unanswered.
    """
    for path in engine.health_paths:
        status, _ = await fetch(client, settings, path)
        if status not in _NO_SUCH_ROUTE:
            return status < httpx.codes.INTERNAL_SERVER_ERROR
    return True


def nobody_listens(failure: Unanswered) -> bool:
    """Whether the kernel itself said so (ECONNREFUSED), and not a resolver, a route or a limit of our own."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [failure]
    while waiting:
        error = waiting.pop()
        if isinstance(error, ConnectionRefusedError):
            return True
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            waiting += [error.__cause__, error.__context__]
    return False


class Watcher:
    """Watches one backend until it is cancelled. ``nudge`` makes it look at once (something went wrong)."""

    def __init__(
        self,
        backend: Backend,
        client: httpx.AsyncClient,
        settings: UpstreamSettings,
        clock: Clock,
        restarted: Callable[[BackendName], None],
        crowd: Callable[[], int] = lambda: 1,
    ) -> None:
        """``restarted`` is told when it came back, ``crowd`` tells how many backends are watched in all."""
        self._backend = backend
        self._client = client
        self._settings = settings
        self._clock = clock
        self._restarted = restarted
        self._crowd = crowd
        self._nudged = asyncio.Event()
        self._discover_after_s = 0.0

    def nudge(self, *, restarted: bool = False) -> None:
        """Something happened: look soon, and if it ``restarted``, ask anew what it is."""
        if restarted:
            self._discover_after_s = 0.0
        self._nudged.set()

    async def run(self, after: asyncio.Task[None]) -> None:
        """Watch until cancelled, beginning when the first look (``after``) is over."""
        await after
        while True:
            await self._rest()
            await self.look()

    async def _rest(self) -> None:
        """Until the next look is due, or a little after a nudge: what went wrong may still be going wrong."""
        settings, backend = self._settings, self._backend
        is_quiet = backend.standing.is_sound(self._clock.now_s()) and not backend.wires.has_suspects
        wanted_s = settings.probe_interval_s if is_quiet else settings.revival_interval_s
        interval_s = max(wanted_s, self._crowd() / (QUIET_LOOKS_PER_S if is_quiet else LOOKS_PER_S))
        # Not wait_for: on Python 3.11 it swallows a cancellation that meets the nudge, and this task would never end.
        try:
            async with asyncio.timeout(interval_s):
                await self._nudged.wait()
        except TimeoutError:
            return
        self._nudged.clear()
        await asyncio.sleep(self._settings.revival_interval_s)

    async def look(self) -> None:
        """One round: probe, then discovery when it is due or the backend came back, then load."""
        backend = self._backend
        try:
            await self._ask()
        except Unanswered as failure:
            if failure.refused:
                backend.mark_down()
            else:
                backend.missed()
            if nobody_listens(failure):
                backend.wires.suspect(self._clock.now_s())
        backend.wires.cut_silent(self._clock.now_s(), self._settings.gone_grace_s)

    async def _ask(self) -> None:
        backend, now_s = self._backend, self._clock.now_s
        if backend.discovered and not await alive(self._client, backend.settings, backend.engine):
            backend.missed()
            return
        if not backend.discovered or not backend.up or now_s() >= self._discover_after_s:
            await self._discover()
        if backend.mark_up(now_s()):
            self._restarted(backend.name)
        backend.probed(now_s())
        load = await scrape(self._client, backend.settings, backend.engine)
        if load is not None:
            backend.learn_load(load, now_s())

    async def _discover(self) -> None:
        engine, facts = await discover(self._client, self._backend.settings)
        self._backend.learn_facts(engine, facts)
        # An engine that names no model may still be loading one.
        again_s = self._settings.discovery_interval_s if facts.models else self._settings.probe_interval_s
        self._discover_after_s = self._clock.now_s() + again_s
