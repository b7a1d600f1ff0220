from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_video_s import RULE
from gateway.types import MediumKind
from tests.policy.examples import clip, estimate, policy


def check(limit: int | None, duration_s: float | None, kind: MediumKind = MediumKind.VIDEO) -> str | None:
    assert RULE.measured is not None
    error = RULE.measured(policy(max_video_s=limit), Measured((), estimate(), [clip(kind, duration_s=duration_s)]))
    return None if error is None else error.message


def test_what_lasts_longer_and_what_does_not_tell_is_refused() -> None:
    assert check(4, 4.0) is None
    assert check(4, 4.5) == "The video lasts 4.500 s, the limit is 4 s."
    assert check(4, None) == "The video does not say how long it lasts, the limit is 4 s."
    assert check(None, None) is None
    assert check(4, 9.0, MediumKind.AUDIO) is None
