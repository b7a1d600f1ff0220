"""How long one video may last, by its header. A video whose header does not tell is refused once there is a limit."""

from __future__ import annotations

from gateway.errors import MediumTooLong
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount
from gateway.types import MediumKind


def _measured(values: RuleValues, measured: Measured) -> MediumTooLong | None:
    limit = values.max_video_s
    for clip in measured.clips:
        if limit is None or clip.kind is not MediumKind.VIDEO:
            continue
        if clip.duration_s is None or clip.duration_s > limit:
            lasts = "does not say how long it lasts" if clip.duration_s is None else f"lasts {clip.duration_s:.3f} s"
            return MediumTooLong(f"The video {lasts}, the limit is {limit} s.", part=clip.name, rule="max_video_s")
    return None


RULE = Rule(
    key="max_video_s",
    summary="Whole seconds one video may last; with a limit, one whose header does not tell is refused.",
    kind=Amount("max_video_s", 1, 10**6, word="none"),
    default=None,
    measured=_measured,
    of_clips=True,
)
