from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.policy.rule import Measured
from gateway.policy.rules.max_total_pixels import RULE
from gateway.types import Size
from tests.policy.examples import estimate, image, policy


@pytest.mark.parametrize(("limit", "refused"), [(300, False), (299, True), (None, False)])
def test_all_images_count_together_as_they_are_delivered(limit: int | None, *, refused: bool) -> None:
    assert RULE.measured is not None
    images = [image(10, 10), replace(image(1000, 1000), name="second", target=Size(20, 10))]
    error = RULE.measured(policy(max_total_pixels=limit), Measured(images, estimate()))
    assert (error is not None) is refused
    if error is not None:
        assert (error.part, error.message) == ("second", "The images have 300 pixels together, the limit is 299.")
