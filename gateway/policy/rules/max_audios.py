"""How many sounds one request may hold, over all roles and turns."""

from __future__ import annotations

from gateway.errors import TooManyMedia
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Rule
from gateway.policy.values import Amount
from gateway.types import Call, MediumKind


def _declared(values: RuleValues, call: Call) -> TooManyMedia | None:
    limit = values.max_audios
    found = [medium.name for medium in call.other_media if medium.kind is MediumKind.AUDIO]
    if limit is None or len(found) <= limit:
        return None
    message = f"The request has {len(found)} sounds, the limit is {limit}."
    return TooManyMedia(message, part=found[limit], rule="max_audios")


RULE = Rule(
    key="max_audios",
    summary="Sounds per request, counted over all roles and turns, repetitions included.",
    kind=Amount("max_audios", 0, 10_000, word="none"),
    default=16,
    declared=_declared,
    of_clips=True,
)
