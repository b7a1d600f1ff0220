from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_images import RULE
from tests.policy.examples import call, estimate, image, part, policy


def check(limit: int | None, count: int) -> str | None:
    assert RULE.declared is not None
    error = RULE.declared(policy(max_images=limit), call(*[part(index) for index in range(count)]))
    return None if error is None else error.message


def test_repetitions_count_and_the_limit_itself_is_allowed() -> None:
    assert check(2, 2) is None
    assert check(2, 3) == "The request has 3 images, the limit is 2."


def test_none_is_no_limit_and_zero_is_one() -> None:
    assert check(None, 50) is None
    assert check(0, 1) == "The request has 1 images, the limit is 0."
    assert check(0, 0) is None


def test_frames_and_pages_count_once_they_are_known() -> None:
    assert RULE.measured is not None
    images = Measured([image(), image(), image()], estimate())
    assert RULE.measured(policy(max_images=3), images) is None
    assert RULE.measured(policy(max_images=None), images) is None
    error = RULE.measured(policy(max_images=2), images)
    assert error is not None
    assert error.message == "The request has 3 images, frames and pages included; the limit is 2."
