from __future__ import annotations

from gateway.telemetry.catalogue import DECLARATIONS
from gateway.telemetry.standing_metrics import STANDING_METRICS


def test_they_are_in_the_catalogue() -> None:
    assert set(STANDING_METRICS) <= set(DECLARATIONS)
