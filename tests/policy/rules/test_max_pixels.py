from __future__ import annotations

import pytest

from gateway.policy.effective import Excess, Geometry, OnExcess
from gateway.policy.rule import Measured
from gateway.policy.rules.max_pixels import RULE
from tests.policy.examples import estimate, image, policy


@pytest.mark.parametrize(
    ("on_excess", "geometry", "max_pixels", "refused"),
    [
        (Excess.SHRINK, Geometry.RESIZE, 100, False),
        (Excess.REJECT, Geometry.RESIZE, 100, True),
        (Excess.REJECT, Geometry.RESIZE, None, True),
        (Excess.SHRINK, Geometry.PRESERVE, 100, True),
        (Excess.SHRINK, Geometry.PRESERVE, None, False),
    ],
)
def test_a_larger_image_is_refused_only_where_it_may_not_be_shrunk(
    on_excess: Excess, geometry: Geometry, max_pixels: int | None, *, refused: bool
) -> None:
    assert RULE.measured is not None
    rules = policy(on_excess=OnExcess(max_pixels=on_excess), geometry=geometry, max_pixels=max_pixels)
    error = RULE.measured(rules, Measured([image(10, 10, cap_pixels=100), image(11, 10, cap_pixels=100)], estimate()))
    assert (error is not None) is refused
    if error is not None:
        assert "110 pixels (11x10), the limit is 100" in error.message


def test_without_a_known_cap_nothing_is_refused() -> None:
    assert RULE.measured is not None
    assert (
        RULE.measured(policy(on_excess=OnExcess(max_pixels=Excess.REJECT)), Measured([image(9_999, 9_999)], estimate()))
        is None
    )
