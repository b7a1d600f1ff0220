"""How many resends there may be: a token bucket fed by requests, so that a bad hour does not double the load.

Each request deposits ``ratio`` of a resend, each second ``floor_per_s`` (a quiet gateway may still fail over); unused
resends are kept up to ``limit``. The idea is Finagle's RetryBudget. Pure: time is an argument.
"""

from __future__ import annotations

_LIMIT = 100.0
_AT_START = 10.0


class RetryBudget:
    """Not thread-safe; one per gateway process."""

    __slots__ = ("_floor_per_s", "_limit", "_ratio", "_seen_s", "_tokens")

    def __init__(self, ratio: float, floor_per_s: float, limit: float = _LIMIT) -> None:
        if ratio < 0 or floor_per_s < 0 or limit < 1:
            raise ValueError("a retry budget needs ratio >= 0, floor_per_s >= 0 and limit >= 1")
        self._ratio = ratio
        self._floor_per_s = floor_per_s
        self._limit = limit
        self._tokens = min(_AT_START, limit)
        self._seen_s: float | None = None

    def deposit(self) -> None:
        """A request is sent."""
        self._tokens = min(self._limit, self._tokens + self._ratio)

    def take(self, now_s: float) -> bool:
        """Spend one resend; ``False`` when there is none."""
        if self._seen_s is not None and now_s > self._seen_s:
            self._tokens = min(self._limit, self._tokens + (now_s - self._seen_s) * self._floor_per_s)
        self._seen_s = now_s
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
