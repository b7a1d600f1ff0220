"""What a scorer sees: the whole field of candidates at once, because a score compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.holding import Holding
from gateway.types import BackendView


@dataclass(frozen=True, slots=True)
class Field:
    """The candidates that passed the filters, with what is known of each in the same order.

    ``holdings`` is what each holds of the request; ``first_token_s`` is the expected time to
    the first token there.
    """

    ask: RouteAsk
    profile: Profile
    views: Sequence[BackendView]
    holdings: Sequence[Holding]
    first_token_s: Sequence[float]


@dataclass(frozen=True, slots=True)
class Scorer:
    """``score`` gives one number in [0, 1] per candidate of the field, in its order."""

    name: str
    score: Callable[[Field], list[float]]
