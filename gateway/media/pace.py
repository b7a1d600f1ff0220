"""How long jobs take here: the rules of thumb of ``cost``, scaled by what the pool has observed of each kind of job.

Decided here: how observations become a ratio. Each kind (an operation; for pixels the format, and whether it is decoded
scan by scan) has one: time taken over time expected, of the latest jobs together, so that a job counts for as much as
it should take. A mean of ratios would let a header that waited 20 ms for a CPU say that pixels take forty times as
long. A kind not seen yet is taken to be as fast or slow as the others, for most of a ratio is the machine and its
load; headers say nothing of pixels. An observation is wall time at a worker, so that neighbours on the machine count.
Not decided here: what is done with the time expected (``line``). Plain data, no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.media.cost import expected_s, kind_of
from gateway.media.messages import Prepare, PrepareClip, Question

# How much of what was seen is left when the next one comes: ten jobs count.
_KEPT = 0.9
# What the rules of thumb are believed for before anything is seen, as so much work that went as expected. For pixels
# half a photograph, so that a few icons and their overheads do not make a giant look hopeless; for headers two.
_BELIEVED_PIXELS_S = 0.05
_BELIEVED_HEADERS_S = 0.001
# How far one observation may stray: a stalled machine is not ten thousand times slower for ever.
_MAX_RATIO = 100.0


@dataclass(slots=True)
class _Ratio:
    """Time taken over time expected, of work that is gradually forgotten, with some that went as expected."""

    believed_s: float
    taken_s: float = 0.0
    expected_s: float = 0.0

    @property
    def value(self) -> float:
        return (self.believed_s + self.taken_s) / (self.believed_s + self.expected_s)

    def learn(self, taken_s: float, expected_s: float) -> None:
        self.taken_s = self.taken_s * _KEPT + taken_s
        self.expected_s = self.expected_s * _KEPT + expected_s


class Pace:
    """Answers ``expected_s`` and learns from what was taken."""

    def __init__(self) -> None:
        self._by_kind: dict[str, _Ratio] = {}
        self._any = _Ratio(_BELIEVED_PIXELS_S)

    def expected_s(self, question: Question) -> float:
        """Seconds one worker will be busy."""
        return expected_s(question) * self._by_kind.get(kind_of(question), self._any).value

    def learn(self, question: Question, taken_s: float) -> None:
        rule_s = expected_s(question)
        taken_s = min(taken_s, rule_s * _MAX_RATIO)
        of_pixels = isinstance(question, Prepare | PrepareClip) and not question.plan.keeps_file
        believed_s = _BELIEVED_PIXELS_S if of_pixels else _BELIEVED_HEADERS_S
        self._by_kind.setdefault(kind_of(question), _Ratio(believed_s)).learn(taken_s, rule_s)
        if of_pixels:
            self._any.learn(taken_s, rule_s)

    @property
    def ratios(self) -> Mapping[str, float]:
        """Observed over rule of thumb, by kind seen so far."""
        return {kind: ratio.value for kind, ratio in self._by_kind.items()}
