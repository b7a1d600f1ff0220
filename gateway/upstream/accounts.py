"""What our own requests ask of one backend at this moment, as running sums, and what they asked of it lately.

A request's account is opened when the backend is chosen, loses its prefill share when the first byte comes (or, where
the whole answer comes at once, when its first token should be there), and is closed on every way out. Everything is
synchronous and safe to repeat, so no cancellation can leak load. Time is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from gateway.routing.field import work_tokens
from gateway.types import RequestCost

# Recent work loses two thirds in this time: long enough for dozens of requests on a busy backend, short enough that who
# was idle an hour ago owes nothing.
RECENT_S = 120.0
# An answer in one piece is taken to be past its prefill after twice the expected time and a little.
_LATE_FACTOR, _LATE_S = 2.0, 0.25


class Load:
    """The sums. ``changed`` is called after every change."""

    __slots__ = (
        "_changed",
        "_due",
        "_numbers",
        "_recent_s",
        "_when_idle",
        "encode_patches",
        "kv_tokens",
        "prefill_tokens",
        "recent_work_tokens",
        "requests",
    )

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._due: list[tuple[float, int, OpenAccount]] = []
        self._numbers = count()
        self._recent_s = -math.inf
        self._when_idle: Callable[[], None] | None = None
        self.requests = 0
        self.kv_tokens = 0
        self.prefill_tokens = 0
        self.encode_patches = 0
        self.recent_work_tokens = 0.0

    def open(self, cost: RequestCost, now_s: float = 0.0) -> OpenAccount:
        self.requests += 1
        self.kv_tokens += cost.kv_tokens
        self.prefill_tokens += cost.prefill_tokens
        self.encode_patches += cost.encode_patches
        self.advance(now_s)
        self.recent_work_tokens += work_tokens(cost.prefill_tokens, cost.encode_patches, cost.output_tokens)
        account = OpenAccount(self, cost)
        if cost.first_token_s is not None:
            due_s = now_s + _LATE_FACTOR * cost.first_token_s + _LATE_S
            heappush(self._due, (due_s, next(self._numbers), account))
        self._changed()
        return account

    def advance(self, now_s: float) -> None:
        """Let time pass: recent work fades, first tokens that should have come are taken to have."""
        if now_s > self._recent_s:
            self.recent_work_tokens *= math.exp((self._recent_s - now_s) / RECENT_S)
            self._recent_s = now_s
        while self._due and self._due[0][0] <= now_s:
            heappop(self._due)[2].answered()

    def answered(self, cost: RequestCost) -> None:
        self.prefill_tokens -= cost.prefill_tokens
        self.encode_patches -= cost.encode_patches
        self._changed()

    def closed(self, cost: RequestCost) -> None:
        self.requests -= 1
        self.kv_tokens -= cost.kv_tokens
        self._changed()
        if self._when_idle is not None and not self.requests:
            then, self._when_idle = self._when_idle, None
            then()

    def when_idle(self, then: Callable[[], None] | None) -> None:
        """Call ``then`` once, when no request is left (at once if there is none); ``None`` takes that back."""
        self._when_idle = then if self.requests else None
        if then is not None and not self.requests:
            then()


class OpenAccount:
    """One request's standing on one backend (``ports.Account``)."""

    __slots__ = ("_answered", "_closed", "_cost", "_load")

    def __init__(self, load: Load, cost: RequestCost) -> None:
        self._load = load
        self._cost = cost
        self._answered = False
        self._closed = False

    def answered(self) -> None:
        """The first token came: the prefill is no longer ahead of others."""
        if not self._answered:
            self._answered = True
            self._load.answered(self._cost)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.answered()
            self._load.closed(self._cost)
