from __future__ import annotations

from gateway.policy.effective import Animated
from gateway.policy.rule import Measured
from gateway.policy.rules.animated import RULE
from gateway.types import ImageFormat
from tests.policy.examples import estimate, image, policy


def test_several_frames_are_refused_only_where_the_policy_says_so() -> None:
    assert RULE.measured is not None
    images = Measured([image(), image(kind=ImageFormat.GIF, frames=3)], estimate())
    assert RULE.measured(policy(animated=Animated.FIRST), images) is None
    error = RULE.measured(policy(animated=Animated.REJECT), images)
    assert error is not None
    assert error.message == "The image has 3 frames, the policy accepts still images only."


def test_a_still_gif_is_no_animation() -> None:
    assert RULE.measured is not None
    still = Measured([image(kind=ImageFormat.GIF)], estimate())
    assert RULE.measured(policy(animated=Animated.REJECT), still) is None
