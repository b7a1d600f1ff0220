from __future__ import annotations

from gateway.policy.effective import Video
from gateway.policy.rules.video import RULE
from tests.policy.examples import node


def test_files_are_passed_unless_a_policy_asks_for_frames() -> None:
    assert RULE.default is Video.FILE
    assert RULE.kind.parse(node("frames")) is Video.FRAMES
