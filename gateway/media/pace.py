"""How long jobs take here: the rules of thumb of ``cost``, scaled by what the pool has observed of each kind of job.

Decided here: how observations become a ratio. Each kind (an operation; for pixels the format, and whether it is decoded
scan by scan) has one; a kind not seen yet is taken to be as fast or slow as the others, for most of a ratio is the
machine and its load. An observation is wall time at a worker, so that neighbours on the machine count. Not decided
here: what is done with the time expected (``line``). Plain data, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.media.cost import expected_s, kind_of
from gateway.media.messages import Question

# Weight of the newest observation once there are many; of the n-th before that, 1/n.
_LEARNING_RATE = 0.1
# How far one observation may stray: a stalled machine is not ten thousand times slower for ever.
_MAX_RATIO = 100.0


@dataclass(slots=True)
class _Ratio:
    """A running mean that forgets: exact over the first ten, exponential after that."""

    value: float = 1.0
    count: int = 0

    def learn(self, observed: float) -> None:
        self.count += 1
        self.value += max(_LEARNING_RATE, 1 / self.count) * (observed - self.value)


class Pace:
    """Answers ``expected_s`` and learns from what was taken."""

    def __init__(self) -> None:
        self._by_kind: dict[str, _Ratio] = {}
        self._any = _Ratio()

    def expected_s(self, question: Question) -> float:
        """Seconds one worker will be busy."""
        return expected_s(question) * self._by_kind.get(kind_of(question), self._any).value

    def learn(self, question: Question, taken_s: float) -> None:
        observed = min(taken_s / expected_s(question), _MAX_RATIO)
        self._by_kind.setdefault(kind_of(question), _Ratio()).learn(observed)
        self._any.learn(observed)

    @property
    def ratios(self) -> Mapping[str, float]:
        """Observed over rule of thumb, by kind seen so far."""
        return {kind: ratio.value for kind, ratio in self._by_kind.items()}
