from __future__ import annotations

from gateway.telemetry.catalogue import DECLARATIONS
from gateway.telemetry.kv_event_metrics import KV_EVENT_METRICS


def test_they_are_in_the_catalogue() -> None:
    assert set(KV_EVENT_METRICS) <= set(DECLARATIONS)
