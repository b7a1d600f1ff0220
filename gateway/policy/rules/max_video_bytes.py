"""How many bytes one video's file may have.

The exact count is known once it was read; a text that is far too long for it is refused before.
"""

from __future__ import annotations

from gateway.errors import MediumTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule, is_spelled_longer
from gateway.policy.values import BYTE_UNITS, Amount
from gateway.types import Call, MediumKind


def _declared(values: RuleValues, call: Call) -> MediumTooLarge | None:
    limit = values.max_video_bytes
    for medium in call.other_media:
        if medium.kind is MediumKind.VIDEO and is_spelled_longer(medium.source, limit):
            message = f"The video is spelled in more characters than one of at most {limit} bytes has."
            return MediumTooLarge(message, part=medium.name, rule="max_video_bytes")
    return None


def _measured(values: RuleValues, measured: Measured) -> MediumTooLarge | None:
    limit = values.max_video_bytes
    for clip in measured.clips:
        if clip.kind is MediumKind.VIDEO and clip.byte_count > limit:
            message = f"The video has {clip.byte_count} bytes, the limit is {limit}."
            return MediumTooLarge(message, part=clip.name, rule="max_video_bytes")
    return None


RULE = Rule(
    key="max_video_bytes",
    summary="Bytes of one video's file (not of its base64).",
    kind=Amount("max_video_bytes", 1, 2**30, BYTE_UNITS),
    default=48 * 2**20,
    declared=_declared,
    measured=_measured,
    of_clips=True,
)
