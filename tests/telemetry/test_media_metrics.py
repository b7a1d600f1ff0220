from __future__ import annotations

from gateway.telemetry.catalogue import DECLARATIONS
from gateway.telemetry.media_metrics import MEDIA_METRICS


def test_they_are_in_the_catalogue() -> None:
    assert set(MEDIA_METRICS) <= set(DECLARATIONS)
