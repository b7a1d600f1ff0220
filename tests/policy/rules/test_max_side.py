from __future__ import annotations

import pytest

from gateway.policy.effective import Excess, Geometry, OnExcess
from gateway.policy.rule import Measured
from gateway.policy.rules.max_side import RULE
from tests.policy.examples import estimate, image, policy

STEPS = ((1, 100), (2, 50))


@pytest.mark.parametrize(
    ("action", "geometry", "refused"),
    [
        (Excess.SHRINK, Geometry.RESIZE, False),
        (Excess.REJECT, Geometry.RESIZE, True),
        (Excess.SHRINK, Geometry.PRESERVE, True),
    ],
)
def test_a_longer_side_is_refused_only_where_it_may_not_be_shrunk(
    action: Excess, geometry: Geometry, *, refused: bool
) -> None:
    assert RULE.measured is not None
    rules = policy(max_side=STEPS, on_excess=OnExcess(max_side=action), geometry=geometry)
    assert RULE.measured(rules, Measured([image(100, 60)], estimate())) is None
    error = RULE.measured(rules, Measured([image(50, 50), image(30, 51)], estimate()))
    assert (error is not None) is refused
    if error is not None:
        assert "51 pixels (30x51), the limit is 50" in error.message


def test_without_steps_nothing_is_refused() -> None:
    assert RULE.measured is not None
    rules = policy(on_excess=OnExcess(max_side=Excess.REJECT))
    assert RULE.measured(rules, Measured([image(9_999, 9_999)], estimate())) is None
