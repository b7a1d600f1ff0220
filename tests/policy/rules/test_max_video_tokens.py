from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_video_tokens import RULE
from tests.policy.examples import clip, estimate, policy


def check(limit: int | None, *tokens: int | None) -> str | None:
    assert RULE.measured is not None
    clips = [clip(tokens=each) for each in tokens]
    error = RULE.measured(policy(max_video_tokens=limit), Measured((), estimate(), clips))
    return None if error is None else error.message


def test_videos_count_together() -> None:
    assert check(2000, 900, 1100) is None
    assert check(1999, 900, 1100) == "The request's videos need 2000 tokens, the limit is 1999."
    assert check(1000, 900, None) is None
    assert check(None, 10**6) is None
