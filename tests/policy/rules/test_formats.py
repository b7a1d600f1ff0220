from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.formats import DECODED, RULE
from gateway.types import ImageFormat
from tests.policy.examples import estimate, image, policy


def test_a_format_that_is_not_listed_is_named_in_the_refusal() -> None:
    assert RULE.measured is not None
    rules = policy(formats=(ImageFormat.JPEG, ImageFormat.PNG))
    images = [image(kind=ImageFormat.PNG), image(kind=ImageFormat.WEBP)]
    error = RULE.measured(rules, Measured(images, estimate()))
    assert error is not None
    assert error.message == "The image is WEBP, accepted are jpeg, png."
    assert RULE.measured(policy(), Measured(images, estimate())) is None


def test_what_is_only_recognised_is_never_accepted_by_default() -> None:
    assert not {ImageFormat.PDF, ImageFormat.SVG} & set(DECODED)
