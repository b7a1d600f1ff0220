from __future__ import annotations

from gateway.policy.rule import Measured
from gateway.policy.rules.max_input_pixels import RULE
from tests.policy.examples import estimate, image, policy


def test_the_raster_of_the_header_is_compared() -> None:
    assert RULE.measured is not None
    images = [image(8_000, 8_000), image(12_000, 12_000)]
    assert RULE.measured(policy(max_input_pixels=144_000_000), Measured(images, estimate())) is None
    error = RULE.measured(policy(max_input_pixels=64_000_000), Measured(images, estimate()))
    assert error is not None
    assert error.message == "The image has 144000000 pixels (12000x12000), the limit is 64000000."
