"""When a backend is left alone for a while: a circuit breaker per backend, time as an argument.

closed -> open after ``failures`` transport failures in a row -> half open when ``open_s`` is over -> closed by the
first success, or open again for twice as long, up to ``limit_s``. Half open lets one request try at a time. A status
code is no failure here: engines answer 500 to requests that were the client's fault, and one bad client must not take
a backend from everybody (what status codes tell of a backend is compared over the fleet: ``outliers``).
"""

from __future__ import annotations

from enum import StrEnum


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Not thread-safe; owned by one backend of one loop."""

    __slots__ = ("_failures", "_in_a_row", "_limit_s", "_next_open_s", "_open_s", "_trial_until_s", "_until_s")

    def __init__(self, failures: int, open_s: float, limit_s: float) -> None:
        if failures < 1 or open_s <= 0 or limit_s < open_s:
            raise ValueError("a breaker needs failures >= 1 and 0 < open_s <= limit_s")
        self._failures = failures
        self._open_s = open_s
        self._limit_s = limit_s
        self._in_a_row = 0
        self._next_open_s = open_s
        self._until_s: float | None = None
        self._trial_until_s: float | None = None

    def state(self, now_s: float) -> BreakerState:
        if self._until_s is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now_s < self._until_s else BreakerState.HALF_OPEN

    @property
    def is_closed(self) -> bool:
        return self._until_s is None

    def allows(self, now_s: float) -> bool:
        """Whether a request may try: always while closed; half open, while no other one tries."""
        if self._until_s is None:
            return True
        return now_s >= self._until_s and (self._trial_until_s is None or now_s >= self._trial_until_s)

    def tried(self, now_s: float) -> bool:
        """A request is sent. Tells whether it is a trial: others wait for what becomes of it, ``open_s`` at most."""
        if self._until_s is None or now_s < self._until_s:
            return False
        self._trial_until_s = now_s + self._open_s
        return True

    def failed(self, now_s: float) -> None:
        """A connection was lost or silent for too long."""
        self._in_a_row += 1
        self._trial_until_s = None
        if self._until_s is not None:
            if now_s < self._until_s:
                return  # a request sent before it opened, or a last resort: no news
        elif self._in_a_row < self._failures:
            return
        self._until_s = now_s + self._next_open_s
        self._next_open_s = min(self._next_open_s * 2, self._limit_s)

    def half_open(self, now_s: float) -> None:
        """Let one try now instead of at the end of the pause: there is nobody else, or it has just come back."""
        if self._until_s is not None and now_s < self._until_s:
            self._until_s = now_s

    def succeeded(self) -> bool:
        """A response came, whatever its status. Tells whether that changed anything."""
        if self._in_a_row == 0 and self._until_s is None:
            return False
        self._in_a_row = 0
        self._next_open_s = self._open_s
        self._until_s = self._trial_until_s = None
        return True
