"""Whether one backend may get requests now, and how many: up or down, breaker, ejection, draining, rest, slow start.

Decided here: how these marks combine, and when each wears off. Not decided here: who sets one (``health``: probes;
``service``: what requests met; ``outliers``: the comparison with the fleet), and what routing makes of it. Time is an
argument.
"""

from __future__ import annotations

from gateway.upstream.breaker import Breaker
from gateway.upstream.settings import UpstreamSettings
from gateway.upstream.slow_start import ramp


class Standing:
    """The marks of one backend. ``up`` starts hopeful: an engine nobody could ask yet may well answer.

    ``returns`` counts how often it came back, and under one name never says the same of two lives (``registry``).
    """

    __slots__ = (
        "_draining_until_s",
        "_ejected_until_s",
        "_joined_s",
        "_limits",
        "_misses",
        "_resting_until_s",
        "breaker",
        "returns",
        "up",
    )

    def __init__(self, limits: UpstreamSettings) -> None:
        self._limits = limits
        self._misses = 0
        self._draining_until_s = self._ejected_until_s = self._resting_until_s = 0.0
        self._joined_s: float | None = None
        self.breaker = Breaker(limits.breaker_failures, limits.breaker_open_s, limits.breaker_open_limit_s)
        self.returns = 0
        self.up = True

    # --- as routing sees it -------------------------------------------------------------------------------------

    def is_healthy(self, now_s: float) -> bool:
        return self.up and self.breaker.allows(now_s) and not self.is_ejected(now_s)

    def is_ejected(self, now_s: float) -> bool:
        return now_s < self._ejected_until_s

    def is_draining(self, now_s: float) -> bool:
        return now_s < self._draining_until_s

    def is_resting(self, now_s: float) -> bool:
        return now_s < self._resting_until_s

    def is_sound(self, now_s: float) -> bool:
        """Nothing to be said against it, so that looking at it now and then is enough."""
        return self.up and not self._misses and self.breaker.is_closed and not self.is_draining(now_s)

    def ramp(self, now_s: float) -> float:
        """How much of its usual share it may get: grows from the moment it came back, or its ejection ended."""
        joined_s = self._joined_s
        if 0.0 < self._ejected_until_s <= now_s:
            joined_s = max(self._ejected_until_s, joined_s or 0.0)
        return ramp(None if joined_s is None else now_s - joined_s, self._limits.slow_start_s)

    # --- marks: each tells whether it changed anything ----------------------------------------------------------

    def joined(self, now_s: float) -> None:
        """It is new in the fleet: others have been there before, so it gets a small share at first."""
        self._joined_s = now_s

    def came_up(self, now_s: float) -> bool:
        """It answered. Coming back from being down ends every other mark: it is another process, most likely."""
        if self.up:
            changed = self._misses > 0
            self._misses = 0
            return changed
        self.up = True
        self.returns += 1
        self._misses = 0
        self._draining_until_s = self._ejected_until_s = self._resting_until_s = 0.0
        self.breaker.half_open(now_s)
        self._joined_s = now_s
        return True

    def went_down(self) -> bool:
        """It certainly does not listen; whatever it drained from is over."""
        changed = self.up or self._draining_until_s > 0.0
        self.up = False
        self._draining_until_s = 0.0
        return changed

    def missed(self) -> bool:
        """A probe failed in a way that may be chance; ``probe_misses`` of them in a row are none."""
        self._misses += 1
        return self._misses >= self._limits.probe_misses and self.went_down()

    def drains(self, now_s: float) -> None:
        """It said so itself. The mark wears off, in case the text was not meant that way."""
        self._draining_until_s = now_s + self._limits.draining_s

    def rests(self, until_s: float) -> None:
        """It asked to be left alone until then."""
        self._resting_until_s = max(self._resting_until_s, until_s)

    def ejected(self, until_s: float) -> None:
        self._ejected_until_s = until_s

    def readmitted(self, now_s: float) -> bool:
        """Its ejection ends now: there is nobody else."""
        if not self.is_ejected(now_s):
            return False
        self._ejected_until_s = now_s
        return True
