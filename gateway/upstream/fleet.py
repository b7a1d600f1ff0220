"""Who is a backend at this moment, and what runs for each: its record, and the task that watches it.

Decided here: how a changed set is taken over. A newcomer is asked what it is before it takes requests; one that left
takes no new ones, and is forgotten when its last one is over; one whose address changed under the same name is left
and joined. Not decided here: who belongs to the set (``sources``), what a record is (``registry``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gateway.ports import Clock
from gateway.types import BackendName
from gateway.upstream.discover import ProbeClients
from gateway.upstream.health import Watcher
from gateway.upstream.registry import Backend, Registry
from gateway.upstream.settings import BackendSettings, UpstreamSettings
from gateway.upstream.waking import keep_awake

_FIRST_LOOKS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Watched:
    """What runs for one backend."""

    watcher: Watcher
    task: asyncio.Task[None]
    waking: asyncio.Task[None]


class Fleet:
    """The members. Owns the tasks that watch each; ``close`` ends them all."""

    def __init__(
        self,
        settings: UpstreamSettings,
        registry: Registry,
        probes: ProbeClients,
        clock: Clock,
        forget: Callable[[BackendName], None],
    ) -> None:
        """``forget`` is told of every backend whose caches are not what they were: restarted, or gone."""
        self._settings = settings
        self._registry = registry
        self._probes = probes
        self._clock = clock
        self._forget = forget
        self._watched: dict[BackendName, Watched] = {}
        self._first_looks = asyncio.Semaphore(_FIRST_LOOKS_AT_ONCE)
        self._ending: set[asyncio.Task[None]] = set()
        self.joined = 0
        self.left = 0

    async def start(self, members: Iterable[BackendSettings]) -> None:
        """The members at the start: hoped to be up, and waited for a little. Raises ValueError as ``take`` does."""
        looks = [self._add(settings) for settings in members]
        if looks:
            await asyncio.wait(looks, timeout=self._settings.discovery_timeout_s)

    def take(self, members: Iterable[BackendSettings]) -> None:
        """From now on exactly these belong. Raises ValueError for certificate files that cannot be used."""
        wanted = {settings.backend_name: settings for settings in members}
        for settings in wanted.values():
            self._probes.of(settings)  # what cannot be used is refused before anything has changed
        for name in [backend.name for backend in self._registry]:
            if name not in wanted or wanted[name].root != self._registry[name].root:
                self._remove(name)
        for settings in wanted.values():
            if settings.backend_name in self._watched:
                self._registry.join(settings)
            else:
                self._add(settings, is_new=True)

    def _add(self, settings: BackendSettings, *, is_new: bool = False) -> asyncio.Task[None]:
        """Begin to watch a member; the task returned is its first look."""
        client = self._probes.of(settings)
        backend = self._registry.join(settings)
        backend.accounts.when_idle(None)
        if is_new:
            self.joined += 1
            backend.mark_down()  # until it has answered; the watcher looks at once
        watcher = Watcher(backend, client, self._settings, self._clock, self._forget, lambda: len(self._watched))
        look = asyncio.create_task(self._first_look(watcher))
        task = asyncio.create_task(watcher.run(after=look), name=f"watch {backend.name}")
        awake = keep_awake(backend, client, self._settings.waking_interval_s)
        waking = asyncio.create_task(awake, name=f"watch {backend.name} awake")
        self._watched[backend.name] = Watched(watcher, task, waking)
        return look

    async def _first_look(self, watcher: Watcher) -> None:
        """Not a thousand at once: requests are served beside them."""
        async with self._first_looks:
            await watcher.look()

    def _remove(self, name: BackendName) -> None:
        self.left += 1
        watched = self._watched.pop(name)
        for task in (watched.task, watched.waking):
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        backend = self._registry.leave(name)
        backend.accounts.when_idle(lambda: self._see_off(backend))

    def _see_off(self, backend: Backend) -> None:
        """Its last request is over."""
        self._registry.forget(backend)
        if backend.name not in self._registry:
            self._forget(backend.name)

    def nudge(self, name: BackendName, *, restarted: bool = False) -> None:
        """Something happened with it: look soon."""
        watched = self._watched.get(name)
        if watched is not None:
            watched.watcher.nudge(restarted=restarted)

    async def close(self) -> None:
        watched = self._watched.values()
        tasks = [*(each.task for each in watched), *(each.waking for each in watched), *self._ending]
        self._watched.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
