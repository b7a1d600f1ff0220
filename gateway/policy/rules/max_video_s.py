"""How long one video may last, by its header. A video whose header does not tell is refused once there is a limit."""

from __future__ import annotations

from gateway.policy.clip_limits import within_seconds
from gateway.policy.rule import Rule
from gateway.policy.values import Amount
from gateway.types import MediumKind

_KEY = "max_video_s"

RULE = Rule(
    key=_KEY,
    summary="Whole seconds one video may last; with a limit, one whose header does not tell is refused.",
    kind=Amount(_KEY, 1, 10**6, word="none"),
    default=None,
    measured=within_seconds(MediumKind.VIDEO, _KEY, lambda values: values.max_video_s),
    of_clips=True,
)
