"""A batch of exchanges counts as each of them would by itself, whatever kinds are in it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import RateExceeded
from gateway.telemetry.log import JsonLog
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.record import ExchangeRecorder
from gateway.types import Change, MediumKind, Usage
from tests.telemetry.test_record import ESTIMATE, exchange

STAGES_MET = [("read", 0.5), ("check", 0.001), ("plan", 0.002), ("check", 0.003), ("forward", 0.4)]
ROUTED = {"tenant": "acme", "backend": "a", "engine": "vllm", "decision_reason": "affinity", "stages": STAGES_MET}
OF_ALL_KINDS: list[dict[str, Any]] = [
    {},
    {"tenant": "acme", "ended_s": None, "trace_id": "a" * 32},
    ROUTED | {"estimate": ESTIMATE, "family": "qwen3_vl", "usage": Usage(20, 10, 5)},
    ROUTED | {"estimate": ESTIMATE, "family": "qwen3_vl", "usage": Usage(31, 10), "text_agrees": False},
    ROUTED | {"estimate": ESTIMATE, "family": "qwen3_vl", "usage": Usage(31, 10, None, 99), "drift_finding": "x"},
    ROUTED | {"estimate": replace(ESTIMATE, video_tokens=9), "exact_prefix_tokens": 5},
    ROUTED | {"stream": True, "first_byte_s": 10.2, "trace_id": "b" * 32, "usage": Usage(20, 10)},
    ROUTED | {"stream": True, "outcome": "client_gone"},
    ROUTED | {"images_passed": 1, "images_known": 1, "changes": {Change.REMOTE.value: 1}, "image_bytes_in": 7},
    ROUTED | {"images_shrunk": 3, "estimate": ESTIMATE, "family": "qwen3_vl", "cache_queries": 3, "cache_hits": 1},
    ROUTED | {"clips": {(MediumKind.VIDEO.value, "sampled"): 1}, "video_tokens_expected": 4, "clip_bytes_in": 3},
    ROUTED | {"retry_reasons": ["connect", "refused"], "stranded": "refused", "stripped_fields": ("a", "b")},
    ROUTED | {"legs": {("prefill", "ok"): 1}, "outcome": "backend_failed", "code": "backend_timeout"},
    {"tenant": "acme", "outcome": "shed", "code": RateExceeded.code, "rule": "rates.tokens"},
    {"dialect": "models", "outcome": "rejected", "code": "route_not_found"},
]


@settings(max_examples=25)
@given(st.lists(st.sampled_from(OF_ALL_KINDS), max_size=40))
def test_a_batch_counts_as_each_by_itself(kinds: list[dict[str, Any]]) -> None:
    told = []
    for at_once in (True, False):
        metrics, log = Metrics(), JsonLog(stream=io.BytesIO())
        batch: list[Callable[[], None]] = []
        recorder = ExchangeRecorder(metrics, log, lambda name: name == "acme", batch.append if at_once else None)
        for facts in kinds:
            recorder.record(exchange(**facts))
        recorder.flush()
        log.close()
        lines = [line for line in metrics.render().decode().splitlines() if line.startswith("vlmgw_")]
        told.append({series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)})
    assert told[0] == pytest.approx(told[1])
