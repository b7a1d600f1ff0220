"""Who belongs to the fleet: the fixed backends, and what each source last said that can be believed.

Decided here: what becomes of a source's silence. A failure changes nothing, however long it lasts; an empty answer
counts when it was the last word for ``hold_s``, since emptying a fleet that works is worse than keeping one that does
not (probes and breakers know which it is); of two backends with one name the first source's counts. Not decided here:
how a source asks (``sources``), what a change does (``fleet``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gateway.types import BackendName
from gateway.upstream.breaker import BreakerState
from gateway.upstream.settings import BackendSettings, Found, NamedSource

# A source that answers with more is a mistake or an attack; each backend costs a task and a connection pool.
FLEET_LIMIT = 1000
_AGAIN_S = 1.0


class Tell(Protocol):
    """Where notable things are told: a log."""

    def __call__(self, level: str, event: str, **fields: object) -> None: ...


def silent(level: str, event: str, **fields: object) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """How a source stands: ``ok`` while its last word was an answer; ``problem`` is what it failed with."""

    name: str
    ok: bool
    backends: tuple[BackendName, ...]
    failures: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """How the fleet comes about: its sources, and how many backends came and went while running. And how it stands:
    breakers, exchanges cut, ejections by backend and reason."""

    sources: tuple[SourceState, ...] = ()
    joined: int = 0
    left: int = 0
    breakers: Mapping[BackendName, BreakerState] = field(default_factory=dict)
    cut_count: int = 0
    ejections: Mapping[tuple[BackendName, str], int] = field(default_factory=dict)


class _Kept:
    """One source and what is believed of it."""

    def __init__(self, named: NamedSource) -> None:
        self.named = named
        self.members: Found = ()
        self.answered = False
        self.failures = 0
        self.problem: str | None = None
        self.emptying: asyncio.TimerHandle | None = None
        self.heard = asyncio.Event()

    def keep(self) -> None:
        """No emptiness is waited out any more."""
        if self.emptying is not None:
            self.emptying.cancel()
            self.emptying = None


class Membership:
    """Owns one task per source. ``take`` is called with all members whenever they changed, once ``start`` is over."""

    def __init__(
        self,
        fixed: Found,
        sources: Sequence[NamedSource],
        take: Callable[[Found], None],
        tell: Tell = silent,
    ) -> None:
        self._fixed = fixed
        self._take = take
        self._tell = tell
        self._kept = [_Kept(named) for named in sources]
        self._tasks: list[asyncio.Task[None]] = []
        self._members: dict[BackendName, BackendSettings] = {}
        self._twice: set[BackendName] = set()
        self._started = False

    async def start(self, patience_s: float) -> Found:
        """Ask every source; the members as known when all have answered or failed, or after ``patience_s``."""
        self._tasks = [asyncio.create_task(self._run(kept), name=f"source {kept.named.name}") for kept in self._kept]
        if self._kept:
            waits = [asyncio.create_task(kept.heard.wait()) for kept in self._kept]
            _, late = await asyncio.wait(waits, timeout=patience_s)
            for wait in late:
                wait.cancel()
        self._members = self._merged()
        return tuple(self._members.values())

    def go_on(self) -> None:
        """The first members are taken over: from here on changes are told."""
        self._started = True
        self._changed()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for kept in self._kept:
            kept.keep()

    def states(self) -> tuple[SourceState, ...]:
        """Every source, in the order of the configuration. Called from any thread."""
        return tuple(
            SourceState(
                kept.named.name,
                kept.problem is None and kept.answered,
                tuple(member.backend_name for member in kept.members),
                kept.failures,
                kept.problem,
            )
            for kept in self._kept
        )

    async def _run(self, kept: _Kept) -> None:
        while True:
            try:
                await kept.named.source.watch(
                    lambda found: self._found(kept, found), lambda why: self._failed(kept, why)
                )
            except Exception as error:  # noqa: BLE001 - whatever a source trips over, the fleet stays and it is asked again
                self._failed(kept, f"{type(error).__name__}: {error}")
            await asyncio.sleep(_AGAIN_S * (0.5 + random.random()))  # noqa: S311 - so that replicas do not ask together

    def _found(self, kept: _Kept, found: Found) -> None:
        if kept.problem is not None:
            self._tell("info", "source_answers_again", source=kept.named.name)
        kept.problem = None
        kept.answered = True
        kept.heard.set()
        if found or not kept.members:
            kept.keep()
            kept.members = tuple(found)
            self._changed()
        elif kept.emptying is None:
            self._tell(
                "warning", "source_empty", source=kept.named.name, kept=len(kept.members), hold_s=kept.named.hold_s
            )
            kept.emptying = asyncio.get_running_loop().call_later(kept.named.hold_s, self._empty, kept)

    def _empty(self, kept: _Kept) -> None:
        kept.emptying = None
        kept.members = ()
        self._changed()

    def _failed(self, kept: _Kept, why: str) -> None:
        kept.failures += 1
        kept.keep()
        kept.heard.set()
        if why != kept.problem:
            kept.problem = why
            self._tell("warning", "source_failed", source=kept.named.name, problem=why, kept=len(kept.members))

    def _merged(self) -> dict[BackendName, BackendSettings]:
        members = {settings.backend_name: settings for settings in self._fixed}
        for kept in self._kept:
            for settings in kept.members:
                name = settings.backend_name
                if name in members:
                    self._once(name, "backend_found_twice", source=kept.named.name)
                elif len(members) >= FLEET_LIMIT:
                    self._once(BackendName(""), "too_many_backends", source=kept.named.name, limit=FLEET_LIMIT)
                else:
                    members[name] = settings
        return members

    def _once(self, name: BackendName, event: str, **fields: object) -> None:
        if name not in self._twice:
            self._twice.add(name)
            self._tell("warning", event, backend=name, **fields)

    def _changed(self) -> None:
        members = self._merged()
        if not self._started or members == self._members:
            return
        joined, left = members.keys() - self._members.keys(), self._members.keys() - members.keys()
        try:
            self._take(tuple(members.values()))
        except ValueError as error:
            self._tell("error", "backends_unusable", problem=str(error))
            return
        self._members = members
        self._tell("info", "backends_changed", joined=sorted(joined), left=sorted(left), backends=len(members))
