"""One exchange becomes metrics and one access line.

Decided here: which facts count where, and that values which are not configured become ``other``. Not decided here: the
facts, what the line says (``access``). Called once per exchange, on the loop, and kept cheap.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from gateway.errors import (
    BackendLost,
    BackendsFull,
    BackendTimeout,
    BackendUnreachable,
    InFlightExhausted,
    KvBudgetExhausted,
    RateExceeded,
)
from gateway.record import ExchangeRecord, stage_totals
from gateway.telemetry.access import access_line
from gateway.telemetry.catalogue import OTHER
from gateway.telemetry.log import JsonLog
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.recent import Recent
from gateway.types import Change, MediumKind, Usage

# Stages that wait for others: the image source, the tenant's budget, engines, the client.
_NOT_OURS = frozenset({"read", "reserve", "encode", "prefill", "forward", "relay"})
_NOT_OURS_REMOTE = _NOT_OURS | {"fetch"}

_BUDGET_CODES = frozenset(error.code for error in (KvBudgetExhausted, InFlightExhausted, RateExceeded, BackendsFull))

# What a backend may be blamed for, by code: a label of every backend, so only these few.
_BACKEND_CODES = frozenset(error.code for error in (BackendUnreachable, BackendLost, BackendTimeout))
# What the edge answers by itself: how long that takes tells nobody anything.
_ONLY_REFUSED = frozenset({"models", "unknown"})
# Outcomes that are no tenant's fault, as one: there are as many series of each as tenants.
_FAILED = {"backend_failed": "failed", "backend_refused": "failed", "bug": "failed"}


def upstream_result(outcome: str, code: str | None) -> str:
    """How a request ended for the backend chosen for it: ok, backend_refused, its failure's code, or not_its_fault.

    What else may end a request once a backend is chosen (an image that does not decode, a bug) says nothing of that
    backend; errors_total has its code.
    """
    if outcome in ("ok", "client_gone"):
        return "ok"
    if code is None:
        return outcome
    return code if code in _BACKEND_CODES else "not_its_fault"


def image_bucket(images: int) -> str:
    """The label of overhead_seconds: 0, 1, 2-4, 5+."""
    if images <= 1:
        return str(images)
    return "2-4" if images <= 4 else "5+"


class ExchangeRecorder:
    """Implements the journey's Recorder port. ``is_tenant`` tells which tenant names are configured.

    ``later`` defers ``flush`` (a loop's ``call_later``), so that records are counted in batches: between two requests
    the code is cold and costs three times as much. A scrape flushes first, so nothing it shows is late. ``traced`` is
    given every exchange and the wall clock at its end, where spans are made. ``recent`` remembers each for a while.
    """

    def __init__(
        self,
        metrics: Metrics,
        log: JsonLog,
        is_tenant: Callable[[str], bool],
        later: Callable[[Callable[[], None]], object] | None = None,
        traced: Callable[[float, ExchangeRecord], None] | None = None,
    ) -> None:
        self.recent = Recent(time.monotonic)
        self._metrics = metrics
        self._log = log
        self._is_tenant = is_tenant
        self._later = later
        self._traced = traced
        self._waiting: deque[tuple[float, ExchangeRecord]] = deque()
        self._flushing = threading.Lock()

    def record(self, exchange: ExchangeRecord) -> None:
        self._waiting.append((time.time(), exchange))
        if self._later is None:
            self.flush()
        elif len(self._waiting) == 1:
            self._later(self.flush)

    def flush(self) -> None:
        """Count what waits. Safe in any thread: the loop does it in its time, the admin thread before a scrape."""
        with self._flushing:
            stages: list[dict[str, float]] = []
            try:
                while self._waiting:
                    time_s, exchange = self._waiting.popleft()
                    totals = stage_totals(exchange.stages)
                    stages.append(totals)
                    self._count(exchange, totals)
                    line = access_line(exchange, time_s, totals)
                    self._log.access(line)
                    self.recent.take(time_s, exchange, line)
                    if self._traced is not None:
                        self._traced(time_s, exchange)
            finally:
                self._metrics.observe_rows("stage_duration_seconds", stages)

    def _count(self, x: ExchangeRecord, stages: dict[str, float]) -> None:
        m = self._metrics
        tenant = x.tenant if x.tenant is not None and self._is_tenant(x.tenant) else OTHER
        m.inc("requests_total", x.dialect, x.outcome)
        m.inc("tenant_requests_total", tenant, _FAILED.get(x.outcome, x.outcome))
        if x.code is not None:
            m.inc("errors_total", x.code)
        ended = x.ended_s if x.ended_s is not None else x.started_s
        if x.dialect not in _ONLY_REFUSED:
            stream = "true" if x.stream else "false"
            m.observe("request_duration_seconds", ended - x.started_s, x.dialect, stream)
            if x.trace_id is not None:
                m.exemplify("request_duration_seconds", ended - x.started_s, x.dialect, stream, trace_id=x.trace_id)
        if x.first_byte_s is not None and x.stream:  # of any other answer the whole duration says as much
            m.observe("time_to_first_byte_seconds", x.first_byte_s - x.started_s, x.dialect)
            if x.trace_id is not None:
                m.exemplify("time_to_first_byte_seconds", x.first_byte_s - x.started_s, x.dialect, trace_id=x.trace_id)
        images = x.images
        not_ours = _NOT_OURS_REMOTE if Change.REMOTE.value in x.changes else _NOT_OURS
        m.observe(
            "overhead_seconds", sum([s for stage, s in stages.items() if stage not in not_ours]), image_bucket(images)
        )
        if images:
            self._count_images(x)
        if x.clips:
            self._count_clips(x)
        if x.stripped_fields:
            m.inc("stripped_fields_total", by=len(x.stripped_fields))
        if x.code in _BUDGET_CODES and "reserve" not in stages:
            m.inc("tenant_budget_refusals_total", tenant)
            m.inc("budget_refusals_total", x.rule or OTHER)
        self._count_tokens(x, tenant)
        self._count_upstream(x, stages.get("forward"))

    def _count_images(self, x: ExchangeRecord) -> None:
        m = self._metrics
        counts = (
            ("passed", x.images_passed),
            ("resized", x.images_shrunk),
            ("reencoded", x.images_recoded),
            ("omitted", x.images_omitted),
        )
        for action, count in counts:
            if count:
                m.inc("images_total", action, by=count)
        for change, count in x.changes.items():
            m.inc("image_changes_total", change, by=count)
        if x.image_ids_sent:
            m.inc("image_ids_total", "bytes", by=x.image_ids_sent - x.image_ids_alone - x.image_ids_missed)
            m.inc("image_ids_total", "alone", by=x.image_ids_alone)
            m.inc("image_ids_total", "missed", by=x.image_ids_missed)
        m.inc("image_bytes_total", "in", by=x.image_bytes_in)
        m.inc("image_bytes_total", "out", by=x.image_bytes_out)
        m.inc("image_pixels_total", "in", by=x.image_pixels_in)
        m.inc("image_pixels_total", "out", by=x.image_pixels_out)
        if x.estimate is not None and x.family is not None:
            m.inc("image_tokens_total", x.family, "asked", by=x.image_tokens_original)
            m.inc("image_tokens_total", x.family, "sent", by=x.estimate.image_tokens)
        if x.cache_queries:
            m.inc("prepared_cache_queries_total", by=x.cache_queries)
            m.inc("prepared_cache_hits_total", by=x.cache_hits)

    def _count_clips(self, x: ExchangeRecord) -> None:
        m = self._metrics
        for (kind, action), count in x.clips.items():
            m.inc("clips_total", kind, action, by=count)
        m.inc("clip_bytes_total", "in", by=x.clip_bytes_in)
        m.inc("clip_bytes_total", "out", by=x.clip_bytes_out)
        actual, expected = None if x.usage is None else x.usage.video_tokens, x.video_tokens_expected
        if expected is not None and actual != expected:
            m.inc("video_token_drift_total")
            self._log.limited(
                "warning", "video_token_drift", model=x.model, backend=x.backend, request_id=x.request_id,
                estimated=expected, actual=actual,
            )  # fmt: skip

    def _count_tokens(self, x: ExchangeRecord, tenant: str) -> None:
        m = self._metrics
        if x.estimate is not None:
            m.inc("estimated_tokens_total", "text", by=x.estimate.text_tokens)
            m.inc("estimated_tokens_total", "image", by=x.estimate.image_tokens)
            if x.estimate.video_tokens:
                m.inc("estimated_tokens_total", "video", by=x.estimate.video_tokens)
            m.inc("estimated_tokens_total", "output", by=x.estimate.output_tokens)
        if x.usage is None:
            if x.outcome == "ok" and x.estimate is not None:
                m.inc("unverified_total", x.dialect)
            return
        m.inc("tokens_total", tenant, "prompt", by=x.usage.prompt_tokens)
        m.inc("tokens_total", tenant, "completion", by=x.usage.completion_tokens)
        if x.usage.cached_tokens:
            m.inc("tokens_total", tenant, "cached", by=x.usage.cached_tokens)
        if x.estimate is None or x.family is None:
            return
        if x.estimate.prompt_tokens:
            m.observe("estimate_ratio", x.usage.prompt_tokens / x.estimate.prompt_tokens, x.family)
        self._count_drift(x, x.family, x.estimate.image_tokens)
        if x.text_agrees is False:
            self._log.limited(
                "warning", "text_token_drift", model=x.model, backend=x.backend, request_id=x.request_id,
                estimated=x.estimate.prompt_tokens, actual=x.usage.prompt_tokens,
            )  # fmt: skip

    def _count_drift(self, x: ExchangeRecord, family: str, estimated: int) -> None:
        """A deviation is counted each time, told in full when it shows something new, and rarely otherwise."""
        actual = None if x.usage is None else x.usage.image_tokens
        expected = estimated if x.expected_image_tokens is None else x.expected_image_tokens
        deviates = actual is not None and actual != expected
        if deviates:
            self._metrics.inc("image_token_drift_total", family)
        if x.drift_finding is not None:
            self._log.event(
                "warning", "image_token_drift", finding=x.drift_finding, model=x.model, backend=x.backend,
                request_id=x.request_id, estimated=expected, actual=actual, **x.drift_inputs,
            )  # fmt: skip
        elif deviates:
            self._log.limited(
                "warning", "image_token_drift", model=x.model, backend=x.backend, request_id=x.request_id,
                estimated=expected, actual=actual,
            )  # fmt: skip

    def _count_upstream(self, x: ExchangeRecord, forward_s: float | None) -> None:
        m = self._metrics
        for reason in x.retry_reasons if x.stranded is None else x.retry_reasons[:-1]:
            m.inc("upstream_retries_total", reason)
        for (role, end), count in x.legs.items():
            m.inc("legs_total", role, end, by=count)
        if x.stranded is not None:
            m.inc("upstream_stranded_total", x.stranded)
        if x.backend is None:
            return
        m.inc("upstream_requests_total", x.backend, upstream_result(x.outcome, x.code))
        if x.decision_reason is not None:
            m.inc("route_decisions_total", x.decision_reason)
        images = x.images
        images += sum(count for (kind, _), count in x.clips.items() if kind == MediumKind.VIDEO)
        if images:
            m.inc("affinity_queries_total", by=images)
            m.inc("affinity_hits_total", by=x.images_known)
        if x.exact_prefix_tokens is not None:
            m.inc("exact_prefixes_total", _compared(x.exact_prefix_tokens, x.usage))
        if forward_s is not None and x.engine is not None:
            m.observe("upstream_ttft_seconds", forward_s, x.engine)


def _compared(expected_tokens: int, usage: Usage | None) -> str:
    """A prefix known from KV events against what the engine says it took from its cache."""
    if usage is None or usage.cached_tokens is None:
        return "unchecked"
    if usage.cached_tokens == expected_tokens:
        return "as_told"
    return "more" if usage.cached_tokens > expected_tokens else "less"
