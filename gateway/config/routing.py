"""How backends are compared, as settings: weights and bounds of the decision.

Decided here: their names, ranges and what they do, in words. Not decided here: what they are multiplied with
(`routing`).
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.config.declaring import setting
from gateway.routing.ask import Profile

_PROFILE = Profile()
_WEIGHTS = _PROFILE.weights


@dataclass(frozen=True, slots=True)
class RoutingConfig:
    """How a backend is chosen: the least weighted sum of seconds, within a load bound."""

    queue_weight: float = setting(
        _WEIGHTS.queue, "Weight of the time that what is queued there takes.", minimum=0, reload=True
    )
    work_weight: float = setting(
        _WEIGHTS.work,
        "Weight of the time that images and prefix take which are not held there; above 1 favours caches.",
        minimum=0,
        reload=True,
    )
    running_weight: float = setting(
        _WEIGHTS.running, "Weight of the delay by requests that decode there.", minimum=0, reload=True
    )
    home_weight: float = setting(
        _WEIGHTS.home,
        "How far a content's home is trusted to hold what other replicas were given, where content comes again.",
        minimum=0,
        maximum=1,
        reload=True,
    )
    load_factor: float = setting(
        _PROFILE.load_factor,
        "No backend takes more new content than this multiple of the mean of recent work.",
        minimum=1,
        reload=True,
    )
    spare_requests: float = setting(
        _PROFILE.spare_requests,
        "How many requests more may go to a backend that holds their content.",
        minimum=0,
        reload=True,
    )
