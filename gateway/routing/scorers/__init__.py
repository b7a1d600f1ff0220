"""What a request costs on a backend, in seconds: each scorer is one file, its weight a field of `ask.Weights`."""

from __future__ import annotations

from collections.abc import Callable

from gateway.routing.ask import Weights
from gateway.routing.scorers.contract import Field, Scorer
from gateway.routing.scorers.home import HOME
from gateway.routing.scorers.queue import QUEUE
from gateway.routing.scorers.running import RUNNING
from gateway.routing.scorers.work import WORK

SCORERS: tuple[tuple[Scorer, Callable[[Weights], float]], ...] = (
    (QUEUE, lambda weights: weights.queue),
    (WORK, lambda weights: weights.work),
    (RUNNING, lambda weights: weights.running),
    (HOME, lambda weights: weights.home),
)

__all__ = ["SCORERS", "Field", "Scorer"]
