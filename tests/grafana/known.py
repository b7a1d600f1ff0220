"""Which metrics and labels there are: the catalogue's, what the client library adds, Prometheus' own, the engines'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from gateway.telemetry.catalogue import DECLARATIONS, Kind

ROOT = Path(__file__).parents[2]
RULES = ROOT / "grafana" / "rules"
# Every scraped series has these.
TARGET = {"job", "instance"}

# Metrics that nobody of us declares: name -> (kind, labels).
FOREIGN: dict[str, tuple[Kind, set[str]]] = {
    # prometheus-client's ProcessCollector
    "process_resident_memory_bytes": (Kind.GAUGE, set()),
    "process_cpu_seconds_total": (Kind.COUNTER, set()),
    # Prometheus' own
    "ALERTS": (Kind.GAUGE, {"alertname", "alertstate", "severity"}),
    "up": (Kind.GAUGE, set()),
    "scrape_duration_seconds": (Kind.GAUGE, set()),
    # vLLM 0.32.0, vllm/v1/metrics/loggers.py
    "vllm:mm_cache_hits_total": (Kind.COUNTER, {"engine", "model_name"}),
    "vllm:mm_cache_queries_total": (Kind.COUNTER, {"engine", "model_name"}),
    "vllm:prefix_cache_hits_total": (Kind.COUNTER, {"engine", "model_name"}),
    "vllm:prefix_cache_queries_total": (Kind.COUNTER, {"engine", "model_name"}),
    "vllm:num_requests_running": (Kind.GAUGE, {"engine", "model_name"}),
    "vllm:num_requests_waiting": (Kind.GAUGE, {"engine", "model_name"}),
    # SGLang, python/sglang/srt/metrics/collector.py
    "sglang:num_running_reqs": (Kind.GAUGE, {"model_name"}),
    "sglang:num_queue_reqs": (Kind.GAUGE, {"model_name"}),
}


def rules(name: str) -> list[dict[str, Any]]:
    """The rules of a file of ``grafana/rules``."""
    groups = yaml.safe_load((RULES / name).read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _series() -> dict[str, tuple[Kind, set[str]]]:
    known = dict(FOREIGN)
    for declared in DECLARATIONS:
        labels = set(declared.labels)
        if declared.kind is Kind.HISTOGRAM:
            for suffix in ("_sum", "_count"):
                known[declared.full_name + suffix] = (Kind.COUNTER, labels)
            known[declared.full_name + "_bucket"] = (Kind.COUNTER, labels | {"le"})
        else:
            known[declared.full_name] = (declared.kind, labels)
    return known


SERIES = _series()
# Recording rules keep labels of what they are made of: those of their `by`, or of a whole series.
RECORDED: dict[str, set[str]] = {
    "vlmgw:request_error_ratio:rate5m": {"job"},
    "vlmgw:request_error_ratio:rate30m": {"job"},
    "vlmgw:request_error_ratio:rate1h": {"job"},
    "vlmgw:request_error_ratio:rate6h": {"job"},
    "vlmgw:overhead_seconds:p99_5m": {"job", "images"},
    "vlmgw:pool_pressure": {"job", "instance"},
}


def declared_name(series: str) -> str:
    """The metric that a series belongs to."""
    for suffix in ("_bucket", "_sum", "_count"):
        if series.endswith(suffix) and series in SERIES:
            return series.removesuffix(suffix)
    return series
