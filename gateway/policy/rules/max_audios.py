"""How many sounds one request may hold, over all roles and turns."""

from __future__ import annotations

from gateway.policy.clip_limits import within_count
from gateway.policy.rule import Rule
from gateway.policy.values import Amount
from gateway.types import MediumKind

_KEY = "max_audios"

RULE = Rule(
    key=_KEY,
    summary="Sounds per request, counted over all roles and turns, repetitions included.",
    kind=Amount(_KEY, 0, 10_000, word="none"),
    default=16,
    declared=within_count(MediumKind.AUDIO, _KEY, lambda values: values.max_audios),
    of_clips=True,
)
