"""How many prompt tokens the videos of one request may take, timestamps and markers included.

``video: frames`` with ``on_excess: shrink`` makes frames smaller, then fewer, before anything is refused.
"""

from __future__ import annotations

from gateway.errors import TooManyTokens
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount


def _measured(values: RuleValues, measured: Measured) -> TooManyTokens | None:
    limit = values.max_video_tokens
    actual = sum(clip.tokens for clip in measured.clips if clip.tokens is not None)
    if limit is None or actual <= limit:
        return None
    message = f"The request's videos need {actual} tokens, the limit is {limit}."
    return TooManyTokens(message, part=measured.clips[0].name, rule="max_video_tokens")


RULE = Rule(
    key="max_video_tokens",
    summary="Prompt tokens of all videos of a request; `video: frames` shrinks to it under `on_excess: shrink`.",
    kind=Amount("max_video_tokens", 0, 10**9, word="none"),
    default=None,
    measured=_measured,
    of_clips=True,
)
