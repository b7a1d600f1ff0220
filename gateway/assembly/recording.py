"""Who is told of finished exchanges: metrics, the access line, and spans where a collector is configured.

Decided here: which setting becomes which argument of theirs, and how long records wait to be counted in one go. Not
decided here: what is counted and told (``telemetry``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gateway.config.tracing import TracingConfig, header_pairs, traces_url
from gateway.telemetry.log import JsonLog
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.record import ExchangeRecorder
from gateway.telemetry.trace import NO_SPANS, SpanTally

if TYPE_CHECKING:
    from gateway.telemetry.spans import Spans

RECORD_EVERY_S = 0.050


def open_spans(tracing: TracingConfig, log: JsonLog) -> Spans | None:
    """The spans' way out; ``None`` where no collector is configured. Raises ValueError where the extra is missing."""
    if tracing.otlp_endpoint is None:
        return None
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise ValueError("tracing.otlp_endpoint: needs the extra otel (pip install 'vlm-gateway[otel]')")
    from gateway.telemetry.spans import Spans, SpanSettings  # noqa: PLC0415  # an optional extra

    settings = SpanSettings(
        endpoint=traces_url(tracing.otlp_endpoint),
        headers=header_pairs(tracing.headers),
        service_name=tracing.service_name,
        sample_ratio=tracing.sample_ratio,
        timeout_s=tracing.timeout_s,
    )
    return Spans(settings, log)


def tally_of(spans: Spans | None) -> SpanTally:
    """What became of traced requests; zeros where none are traced, so that a chart of them is never empty."""
    return NO_SPANS if spans is None else spans.tally()


def recorder_of(
    metrics: Metrics, log: JsonLog, spans: Spans | None, is_tenant: Callable[[str], bool]
) -> ExchangeRecorder:
    """The journey's recorder, which counts in batches on the running loop."""
    return ExchangeRecorder(
        metrics,
        log,
        is_tenant,
        later=lambda flush: asyncio.get_running_loop().call_later(RECORD_EVERY_S, flush),
        traced=None if spans is None else spans.add,
    )
