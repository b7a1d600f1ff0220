from __future__ import annotations

import pytest

from gateway.policy.rule import Measured
from gateway.policy.rules.max_input_side import RULE
from tests.policy.examples import estimate, image, policy


@pytest.mark.parametrize(
    ("images", "side", "refused"),
    [(1, 8000, False), (1, 8001, True), (20, 8000, False), (21, 2000, False), (21, 2001, True)],
)
def test_the_limit_follows_the_number_of_images(images: int, side: int, *, refused: bool) -> None:
    assert RULE.measured is not None
    rules = policy(max_input_side=((1, 8000), (21, 2000)))
    error = RULE.measured(rules, Measured([image(side, 10)] * images, estimate()))
    assert (error is not None) is refused
    if error is not None:
        assert error.rule == "max_input_side"
        assert f"{side} pixels ({side}x10), the limit is" in error.message
        assert error.message.endswith("1 image." if images == 1 else f"{images} images.")


def test_it_is_off_by_default() -> None:
    assert RULE.measured is not None
    assert RULE.measured(policy(), Measured([image(60_000, 10)], estimate())) is None
