"""Which backend does much worse than the others of its model: fewer answers, or much later ones. Time is an argument.

Every ``interval_s`` the backends of one model are compared by what their requests met since the last time:

* *success_rate* (five or more backends): below the mean by ``deviations`` standard deviations, and by 5 points;
* *failures* (two or more): ``failure_ratio`` failed, of the others' together less than half as much;
* *latency* (two or more): ``latency_factor`` times as late as the others' median, against what each request should take
  (a backend that gets the documents is no outlier beside one that gets icons), and ``latency_spare_s`` on average.

Only who met ``volume`` requests is judged. An outlier is ejected for ``base_s``, the n-th time in a row for n times as
long, up to ``limit_s``; at most ``share`` of the backends, but one of them always may be; never the last one in use.
 Semantics and defaults are Envoy's outlier detection (v3 API), whose volume of 100 is one of small requests.

Not decided here: what is a failure (``blame``: nothing that a client may have caused).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median, pstdev

from gateway.types import BackendName, RequestCost

_COMPARED_RATES = 5  # Envoy's success_rate_minimum_hosts
_LEAST_RATE_GAP = 0.05
_WINDOW_INTERVALS = 6
# What a request should take, in orders of magnitude: the same for all, so that only ratios between backends count.
_FIXED_S, _PREFILL_S_PER_TOKEN, _ENCODE_S_PER_PATCH, _DECODE_S_PER_TOKEN = 0.05, 1e-4, 2e-5, 1e-2


class Why(StrEnum):
    SUCCESS_RATE = "success_rate"
    FAILURES = "failures"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True)
class OutlierRules:
    """Thresholds; see the module. ``latency_factor`` None: time is not compared. ``share`` 0: nobody is ejected."""

    interval_s: float = 10.0
    volume: int = 20
    failure_ratio: float = 0.5
    deviations: float = 1.9
    latency_factor: float | None = 5.0
    latency_spare_s: float = 1.0
    base_s: float = 30.0
    limit_s: float = 300.0
    share: float = 0.1


@dataclass(frozen=True, slots=True)
class Ejection:
    """``until_s`` it gets no requests while another backend can take them."""

    name: BackendName
    why: Why
    until_s: float


@dataclass(slots=True)
class _Window:
    born_s: float
    good: int = 0
    bad: int = 0
    timed: int = 0
    log_ratios: float = 0.0
    seconds: float = 0.0

    @property
    def met(self) -> int:
        return self.good + self.bad

    @property
    def success(self) -> float:
        return self.good / self.met

    @property
    def lateness(self) -> float:
        return self.log_ratios / self.timed

    @property
    def mean_s(self) -> float:
        return self.seconds / self.timed


def expected_s(cost: RequestCost, *, streamed: bool) -> float:
    """Until the first event of a stream, or until all of an answer that is none."""
    first_s = _FIXED_S + cost.prompt_tokens * _PREFILL_S_PER_TOKEN + cost.encode_patches * _ENCODE_S_PER_PATCH
    return first_s if streamed else first_s + cost.output_tokens * _DECODE_S_PER_TOKEN


class Outliers:
    """What every backend's requests met, and who is ejected. ``counts``: ejections so far, by name and reason."""

    def __init__(self, rules: OutlierRules) -> None:
        self._rules = rules
        self._windows: dict[BackendName, _Window] = {}
        self._times: dict[BackendName, int] = {}
        self._due_s = 0.0
        self.counts: dict[tuple[BackendName, Why], int] = {}

    def is_due(self, now_s: float) -> bool:
        return now_s >= self._due_s

    def answered(self, name: BackendName, now_s: float) -> None:
        """The backend did its part."""
        self._window(name, now_s).good += 1

    def failed(self, name: BackendName, now_s: float, *, late: bool = False) -> None:
        """It did not; ``late``: after it had counted as answered."""
        window = self._window(name, now_s)
        window.bad += 1
        if late and window.good:
            window.good -= 1

    def took(self, name: BackendName, now_s: float, seconds: float, usual_s: float) -> None:
        window = self._window(name, now_s)
        window.timed += 1
        window.log_ratios += math.log(max(seconds, 1e-4) / usual_s)
        window.seconds += seconds

    def forget(self, name: BackendName) -> None:
        """It restarted, or is no more: what it did before says nothing."""
        self._windows.pop(name, None)
        self._times.pop(name, None)

    def sweep(
        self,
        now_s: float,
        pools: Iterable[Sequence[BackendName]],
        usable: frozenset[BackendName],
        ejected: frozenset[BackendName],
    ) -> list[Ejection]:
        """Compare and eject. Each pool serves one model; ``usable`` are up, let requests in and are not ``ejected``."""
        self._due_s = now_s + self._rules.interval_s
        ejections: list[Ejection] = []
        for pool in pools:
            left = [name for name in pool if name in usable]
            room = max(1, int(self._rules.share * len(pool))) if self._rules.share > 0 else 0
            ejections += self._sweep(now_s, left, room - len(ejected.intersection(pool)))
        out = {ejection.name for ejection in ejections}
        for name in [name for name, times in self._times.items() if times and name in usable and name not in out]:
            self._times[name] -= 1
        for name, window in list(self._windows.items()):
            is_old = now_s - window.born_s >= _WINDOW_INTERVALS * self._rules.interval_s
            if window.met >= self._rules.volume or is_old or name in out:
                del self._windows[name]
        return ejections

    def _window(self, name: BackendName, now_s: float) -> _Window:
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = _Window(now_s)
        return window

    def _sweep(self, now_s: float, left: list[BackendName], room: int) -> Iterable[Ejection]:
        judged = {name: self._windows[name] for name in left if name in self._windows}
        for name, why in self._found(judged):
            if room <= 0 or len(left) <= 1:
                return
            room -= 1
            left.remove(name)
            times = self._times[name] = self._times.get(name, 0) + 1
            self.counts[name, why] = self.counts.get((name, why), 0) + 1
            yield Ejection(name, why, now_s + min(self._rules.base_s * times, self._rules.limit_s))

    def _found(self, windows: dict[BackendName, _Window]) -> list[tuple[BackendName, Why]]:
        """Outliers, the worst first, each once."""
        rates = {name: window for name, window in windows.items() if window.met >= self._rules.volume}
        times = {name: window for name, window in windows.items() if window.timed >= self._rules.volume}
        by_rate = sorted(rates, key=lambda name: rates[name].success)
        by_time = sorted(times, key=lambda name: -times[name].lateness)
        found: dict[BackendName, Why] = {}
        for name in by_rate:
            if self._fails(name, rates):
                found[name] = Why.FAILURES
            elif self._lags(name, rates):
                found[name] = Why.SUCCESS_RATE
        for name in by_time:
            if name not in found and self._is_late(name, times):
                found[name] = Why.LATENCY
        return list(found.items())

    def _fails(self, name: BackendName, rates: dict[BackendName, _Window]) -> bool:
        others = [window for other, window in rates.items() if other != name]
        if not others:
            return False
        own = 1.0 - rates[name].success
        theirs = sum(window.bad for window in others) / sum(window.met for window in others)
        return own >= self._rules.failure_ratio and theirs * 2 < own

    def _lags(self, name: BackendName, rates: dict[BackendName, _Window]) -> bool:
        if len(rates) < _COMPARED_RATES:
            return False
        all_rates = [window.success for window in rates.values()]
        mean = fmean(all_rates)
        gap = max(self._rules.deviations * pstdev(all_rates, mean), _LEAST_RATE_GAP)
        return rates[name].success < mean - gap

    def _is_late(self, name: BackendName, times: dict[BackendName, _Window]) -> bool:
        others = [window for other, window in times.items() if other != name]
        factor = self._rules.latency_factor
        if not others or factor is None:
            return False
        lateness = times[name].lateness - median(window.lateness for window in others)
        spare_s = times[name].mean_s - median(window.mean_s for window in others)
        return lateness >= math.log(factor) and spare_s >= self._rules.latency_spare_s
