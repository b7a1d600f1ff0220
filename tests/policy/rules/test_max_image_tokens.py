from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_image_tokens import RULE
from tests.policy.examples import estimate, image, policy


def message(limit: int | None, *, count: int, tokens: int) -> str | None:
    assert RULE.measured is not None
    measured = Measured([image()] * count, estimate(image_tokens=tokens))
    error = RULE.measured(policy(max_image_tokens=limit), measured)
    return None if error is None else error.message


def test_the_sum_of_all_images_is_compared() -> None:
    assert message(512, count=2, tokens=512) is None
    assert message(511, count=2, tokens=512) == "The 2 images need 512 tokens, the limit is 511."
    assert message(255, count=1, tokens=256) == "The 1 image needs 256 tokens, the limit is 255."
    assert message(None, count=9, tokens=10**6) is None
