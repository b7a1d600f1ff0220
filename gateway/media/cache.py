"""What is remembered of images: facts by source, prepared bytes by content and plan, and work that is under way.

Decided here: how much is kept and that one piece of work is done once however many wait for it. Not decided here: the
keys (``service`` scopes them by tenant). A cache is never the place where a failure is remembered: an error reaches
those who wait for it now, the next one tries again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.errors import GatewayBug, GatewayError, Rejected
from gateway.types import Prepared, SourceFacts

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class FactsCache:
    """At most ``entries`` facts, least recently used out first; about 1 KB each."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._facts: OrderedDict[Hashable, SourceFacts] = OrderedDict()

    def __len__(self) -> int:
        return len(self._facts)

    def get(self, key: Hashable) -> SourceFacts | None:
        facts = self._facts.get(key)
        if facts is not None:
            self._facts.move_to_end(key)
        return facts

    def put(self, key: Hashable, facts: SourceFacts) -> None:
        self._facts[key] = facts
        self._facts.move_to_end(key)
        while len(self._facts) > self._entries:
            self._facts.popitem(last=False)


class PreparedCache:
    """Prepared images, least recently used out first, at most ``limit_bytes`` of data URLs together."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._prepared: OrderedDict[Hashable, Prepared] = OrderedDict()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._prepared)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._prepared

    def get(self, key: Hashable) -> Prepared | None:
        prepared = self._prepared.get(key)
        if prepared is not None:
            self._prepared.move_to_end(key)
        return prepared

    def put(self, key: Hashable, prepared: Prepared) -> None:
        """Keep it, unless it alone takes more than an eighth of the cache: one giant must not push out everything."""
        old = self._prepared.pop(key, None)
        self.held_bytes -= len(old.data_url) if old else 0
        if len(prepared.data_url) * 8 > self._limit_bytes:
            return
        self._prepared[key] = prepared
        self.held_bytes += len(prepared.data_url)
        while self.held_bytes > self._limit_bytes:
            _, oldest = self._prepared.popitem(last=False)
            self.held_bytes -= len(oldest.data_url)


@dataclass(frozen=True, slots=True)
class Work(Generic[ValueT]):
    """Work with what it holds: ``release`` is called once it is over, even if it was cancelled before it began."""

    steps: Coroutine[None, None, ValueT]
    release: Callable[[], None]


@dataclass(slots=True)
class _Flight(Generic[ValueT]):
    task: asyncio.Task[ValueT]
    waiters: int = 0


class SingleFlight(Generic[KeyT, ValueT]):
    """Work under way, by key. Whoever asks for the same key waits for the same work.

    The work is a task of its own: a waiter that is cancelled leaves the others alone, and when the last one leaves, the
    work is cancelled. ``shared`` tells whether a failure concerns everybody (the image is bad) or only the
    circumstances of who began (its place in line): then the next waiter begins anew.
    """

    def __init__(self, shared: Callable[[GatewayError], bool]) -> None:
        self._shared = shared
        self._flights: dict[KeyT, _Flight[ValueT]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: KeyT) -> bool:
        return key in self._flights

    async def get(self, key: KeyT, begin: Callable[[], Work[ValueT]]) -> ValueT:
        """The work's result. If nobody is at it, ``begin`` is called synchronously and takes hold of what it needs."""
        while True:
            flight = self._flights.get(key)
            leads = flight is None
            if flight is None:
                flight = self._flights[key] = self._take_off(begin())
            try:
                return await self._wait(key, flight)
            except GatewayError as error:
                if leads:
                    raise
                if self._shared(error):
                    raise _copy(error) from error

    @staticmethod
    def _take_off(work: Work[ValueT]) -> _Flight[ValueT]:
        task = asyncio.create_task(work.steps)
        task.add_done_callback(lambda _: work.release())
        return _Flight(task)

    async def _wait(self, key: KeyT, flight: _Flight[ValueT]) -> ValueT:
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if flight.waiters == 0 or flight.task.done():
                if self._flights.get(key) is flight:
                    del self._flights[key]
                flight.task.cancel()


def _copy(error: GatewayError) -> GatewayError:
    """The same error for another request; the part it names is for each to say."""
    return type(error)(error.message, rule=error.rule, detail=error.detail, retry_after_s=error.retry_after_s)


def is_about_the_image(error: GatewayError) -> bool:
    """Whether a failure would have met anybody with this image; a full line meets only who stood in it."""
    return isinstance(error, Rejected | GatewayBug)
