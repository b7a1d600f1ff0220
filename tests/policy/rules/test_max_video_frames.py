from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_video_frames import RULE
from tests.policy.examples import clip, estimate, policy


def check(limit: int | None, frames: int | None) -> str | None:
    assert RULE.measured is not None
    error = RULE.measured(policy(max_video_frames=limit), Measured((), estimate(), [clip(frames=frames)]))
    return None if error is None else error.message


def test_frames_that_would_reach_the_model_count() -> None:
    assert check(8, 8) is None
    assert check(8, 20) == "The model would take 20 frames of the video, the limit is 8."
    assert check(8, None) is None
    assert check(None, 768) is None
