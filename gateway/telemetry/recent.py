"""What happened lately, for the page that shows it as it happens: the last exchanges, and sums second by second.

Decided here: how much is kept (nothing grows with traffic) and what is summed. Not decided here: what an exchange's
line says (``record``), how it is shown. Written where exchanges are counted, read in the admin thread; a lock stands
between. Never holds payloads, keys or query strings, because access lines have none.

How a decision came about costs tens of microseconds to tell, so that is told only while somebody watches, and of a few
exchanges a second.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields

from gateway.record import ExchangeRecord
from gateway.types.per_request import per_request

KEPT_EXCHANGES = 60
KEPT_SECONDS = 120
TRAILS_A_SECOND = 20
WATCHED_FOR_S = 5.0
# More backends than this are only seen where they come and go; their sums begin anew then.
_KEPT_BACKENDS = 512


@dataclass(slots=True)
class Sums:
    """Counts since the start, or of one second."""

    requests: int = 0
    failed: int = 0
    shed: int = 0
    rejected: int = 0
    images: int = 0
    image_tokens_asked: int = 0
    image_tokens_sent: int = 0
    image_bytes_in: int = 0
    image_bytes_out: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0


@dataclass(slots=True)
class BackendSums:
    """What one backend was sent since the start, and how much of it it is known to have held."""

    requests: int = 0
    images: int = 0
    images_known: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0


@per_request(frozen=True, slots=True)
class Told:
    """One exchange: its place in the order of all, its access line, and (where told) how its backend was chosen."""

    number: int
    line: dict[str, object]
    trail: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lately:
    """One look: all exchanges after the number asked for, and the sums so far. ``seconds`` maps whole seconds."""

    told: tuple[Told, ...]
    sums: dict[str, int]
    seconds: tuple[tuple[int, dict[str, int]], ...]
    backends: dict[str, dict[str, int]]


_NAMES = tuple(each.name for each in fields(Sums))
_OF_BACKENDS = tuple(each.name for each in fields(BackendSums))
_OUTCOMES = {
    "shed": "shed",
    "rejected": "rejected",
    "backend_failed": "failed",
    "backend_refused": "failed",
    "bug": "failed",
}


class Recent:
    """The memory of one process. ``now_s`` is the monotonic clock."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._told: deque[Told] = deque(maxlen=KEPT_EXCHANGES)
        self._sums = Sums()
        self._seconds: deque[tuple[int, Sums]] = deque(maxlen=KEPT_SECONDS)
        self._backends: dict[str, BackendSums] = {}
        self._watched_s = float("-inf")
        self._trails = 0

    def take(self, time_s: float, x: ExchangeRecord, line: dict[str, object]) -> None:
        """Remember one exchange; ``time_s`` is the wall clock at its end."""
        with self._lock:
            second = int(time_s)
            if not self._seconds or self._seconds[-1][0] < second:
                self._seconds.append((second, Sums()))
                self._trails = 0
            for sums in (self._sums, self._seconds[-1][1]):
                _add(sums, x)
            if x.backend is not None:
                self._add_backend(x.backend, x)
            self._told.append(Told(self._sums.requests, line, self._trail(x)))

    def look(self, after: int = 0) -> Lately:
        """What is new since exchange number ``after``; for some seconds decisions are told in full."""
        self._watched_s = self._now_s()
        with self._lock:
            return Lately(
                tuple(told for told in self._told if told.number > after),
                {name: getattr(self._sums, name) for name in _NAMES},
                tuple((second, {name: getattr(sums, name) for name in _NAMES}) for second, sums in self._seconds),
                {name: {each: getattr(sums, each) for each in _OF_BACKENDS} for name, sums in self._backends.items()},
            )

    def _trail(self, x: ExchangeRecord) -> tuple[str, ...]:
        if x.tell_decision is None or self._now_s() - self._watched_s > WATCHED_FOR_S:
            return ()
        self._trails += 1
        return x.tell_decision() if self._trails <= TRAILS_A_SECOND else ()

    def _add_backend(self, name: str, x: ExchangeRecord) -> None:
        sums = self._backends.get(name)
        if sums is None:
            if len(self._backends) >= _KEPT_BACKENDS:
                self._backends.clear()
            sums = self._backends[name] = BackendSums()
        sums.requests += 1
        sums.images += x.images
        sums.images_known += x.images_known
        if x.usage is not None and x.usage.cached_tokens is not None:
            sums.prompt_tokens += x.usage.prompt_tokens
            sums.cached_tokens += x.usage.cached_tokens


def _add(sums: Sums, x: ExchangeRecord) -> None:
    sums.requests += 1
    if x.outcome in _OUTCOMES:
        ended = _OUTCOMES[x.outcome]
        setattr(sums, ended, getattr(sums, ended) + 1)
    if images := x.images:
        sums.images += images
        sums.image_bytes_in += x.image_bytes_in
        sums.image_bytes_out += x.image_bytes_out
        if x.estimate is not None and x.family is not None:
            sums.image_tokens_asked += x.image_tokens_original
            sums.image_tokens_sent += x.estimate.image_tokens
    if x.usage is not None:
        sums.prompt_tokens += x.usage.prompt_tokens
        sums.cached_tokens += x.usage.cached_tokens or 0
