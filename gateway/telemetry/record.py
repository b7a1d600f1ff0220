"""One exchange becomes metrics and one access line.

Decided here: which facts count where, and that values which are not configured become ``other``. Not decided here: the
facts, what the line says (``access``). Called once per exchange, on the loop, and kept cheap.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

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


class _Ended(NamedTuple):
    """One exchange, and its seconds by stage."""

    exchange: ExchangeRecord
    stages: dict[str, float]


class _Kind(NamedTuple):
    """What decides where an exchange counts. Those of a batch that share it are counted together."""

    dialect: str
    outcome: str
    code: str | None
    rule: str | None
    tenant: str | None
    stream: bool
    backend: str | None
    engine: str | None
    decision_reason: str | None
    family: str | None
    images: int
    is_remote: bool
    stages: tuple[str, ...]


class ExchangeRecorder:
    """Implements the journey's Recorder port. ``is_tenant`` tells which tenant names are configured.

    ``later`` defers ``flush`` (a loop's ``call_later``), so that records are counted in batches: between two requests
    the code is cold and costs three times as much, and most of a batch are of one kind. A scrape flushes first, so
    nothing it shows is late. ``traced`` is given every exchange and the wall clock at its end, where spans are made.
    ``recent`` remembers each for a while.
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
            alike: dict[_Kind, list[_Ended]] = {}
            try:
                while self._waiting:
                    time_s, exchange = self._waiting.popleft()
                    ended = _Ended(exchange, stage_totals(exchange.stages))
                    alike.setdefault(_kind_of(ended), []).append(ended)
                    line = access_line(exchange, time_s, ended.stages)
                    self._log.access(line)
                    self.recent.take(time_s, exchange, line)
                    if self._traced is not None:
                        self._traced(time_s, exchange)
            finally:
                for kind, these in alike.items():
                    self._count(kind, these)

    def _count(self, kind: _Kind, alike: Sequence[_Ended]) -> None:
        """Exchanges of one kind: what they have in common is counted once for all of them."""
        m, these = self._metrics, [ended.exchange for ended in alike]
        tenant = kind.tenant if kind.tenant is not None and self._is_tenant(kind.tenant) else OTHER
        m.inc("requests_total", kind.dialect, kind.outcome, by=len(these))
        m.inc("tenant_requests_total", tenant, _FAILED.get(kind.outcome, kind.outcome), by=len(these))
        if kind.code is not None:
            m.inc("errors_total", kind.code, by=len(these))
        if kind.code in _BUDGET_CODES and "reserve" not in kind.stages:
            m.inc("tenant_budget_refusals_total", tenant, by=len(these))
            m.inc("budget_refusals_total", kind.rule or OTHER, by=len(these))
        self._count_times(kind, alike)
        self._count_tokens(kind, these, tenant)
        if kind.backend is not None:
            m.inc("upstream_requests_total", kind.backend, upstream_result(kind.outcome, kind.code), by=len(these))
            if kind.decision_reason is not None:
                m.inc("route_decisions_total", kind.decision_reason, by=len(these))
        for x in these:
            if kind.images:
                self._count_images(x)
            if x.clips:
                self._count_clips(x)
            if x.stripped_fields:
                m.inc("stripped_fields_total", by=len(x.stripped_fields))
            if x.backend is not None and (kind.images or x.clips or x.exact_prefix_tokens is not None):
                self._count_held(x)
            if x.retry_reasons or x.legs or x.stranded is not None:
                self._count_detours(x)

    def _count_times(self, kind: _Kind, alike: Sequence[_Ended]) -> None:
        """Durations of the whole, of each stage, and of what is ours of them."""
        m = self._metrics
        columns = list(zip(*[ended.stages.values() for ended in alike], strict=True))
        for stage, column in zip(kind.stages, columns, strict=True):
            m.observe_all("stage_duration_seconds", column, stage)
            if stage == "forward" and kind.backend is not None and kind.engine is not None:
                m.observe_all("upstream_ttft_seconds", column, kind.engine)
        not_ours = _NOT_OURS_REMOTE if kind.is_remote else _NOT_OURS
        ours = [column for stage, column in zip(kind.stages, columns, strict=True) if stage not in not_ours]
        spent = [sum(row) for row in zip(*ours, strict=True)] if ours else [0.0] * len(alike)
        m.observe_all("overhead_seconds", spent, image_bucket(kind.images))
        these = [ended.exchange for ended in alike]
        if kind.dialect not in _ONLY_REFUSED:
            stream = "true" if kind.stream else "false"
            taken = [(x.started_s if x.ended_s is None else x.ended_s) - x.started_s for x in these]
            self._observe_traced("request_duration_seconds", taken, these, kind.dialect, stream)
        if kind.stream:  # of any other answer the whole duration says as much
            begun = [x for x in these if x.first_byte_s is not None]
            waits = [x.first_byte_s - x.started_s for x in begun if x.first_byte_s is not None]
            self._observe_traced("time_to_first_byte_seconds", waits, begun, kind.dialect)

    def _observe_traced(self, name: str, values: Sequence[float], of: Sequence[ExchangeRecord], *labels: str) -> None:
        """Each value, and the trace behind it where there is one."""
        self._metrics.observe_all(name, values, *labels)
        for x, value in zip(of, values, strict=True):
            if x.trace_id is not None:
                self._metrics.exemplify(name, value, *labels, trace_id=x.trace_id)

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

    def _count_tokens(self, kind: _Kind, these: Sequence[ExchangeRecord], tenant: str) -> None:
        m = self._metrics
        estimates = [x.estimate for x in these if x.estimate is not None]
        if estimates:
            m.inc("estimated_tokens_total", "text", by=sum([e.text_tokens for e in estimates]))
            m.inc("estimated_tokens_total", "image", by=sum([e.image_tokens for e in estimates]))
            if any(video := [e.video_tokens for e in estimates]):
                m.inc("estimated_tokens_total", "video", by=sum(video))
            m.inc("estimated_tokens_total", "output", by=sum([e.output_tokens for e in estimates]))
        usages = [x.usage for x in these if x.usage is not None]
        if len(usages) < len(these) and kind.outcome == "ok":
            unverified = [x for x in these if x.usage is None and x.estimate is not None]
            if unverified:
                m.inc("unverified_total", kind.dialect, by=len(unverified))
        if not usages:
            return
        m.inc("tokens_total", tenant, "prompt", by=sum([usage.prompt_tokens for usage in usages]))
        m.inc("tokens_total", tenant, "completion", by=sum([usage.completion_tokens for usage in usages]))
        if any(cached := [usage.cached_tokens or 0 for usage in usages]):
            m.inc("tokens_total", tenant, "cached", by=sum(cached))
        if kind.family is not None:
            self._compare(kind.family, these)

    def _compare(self, family: str, these: Sequence[ExchangeRecord]) -> None:
        """Estimates against what engines say."""
        ratios = []
        for x in these:
            if x.estimate is None or x.usage is None:
                continue
            estimated = x.estimate.prompt_tokens
            if estimated:
                ratios.append(x.usage.prompt_tokens / estimated)
            if x.usage.image_tokens is not None or x.drift_finding is not None:
                self._count_drift(x, family, x.estimate.image_tokens)
            if x.text_agrees is False:
                self._log.limited(
                    "warning", "text_token_drift", model=x.model, backend=x.backend, request_id=x.request_id,
                    estimated=estimated, actual=x.usage.prompt_tokens,
                )  # fmt: skip
        self._metrics.observe_all("estimate_ratio", ratios, family)

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

    def _count_detours(self, x: ExchangeRecord) -> None:
        m = self._metrics
        for reason in x.retry_reasons if x.stranded is None else x.retry_reasons[:-1]:
            m.inc("upstream_retries_total", reason)
        for (role, end), count in x.legs.items():
            m.inc("legs_total", role, end, by=count)
        if x.stranded is not None:
            m.inc("upstream_stranded_total", x.stranded)

    def _count_held(self, x: ExchangeRecord) -> None:
        """How much of it was known to be on its backend."""
        m = self._metrics
        images = x.images
        images += sum(count for (kind, _), count in x.clips.items() if kind == MediumKind.VIDEO)
        if images:
            m.inc("affinity_queries_total", by=images)
            m.inc("affinity_hits_total", by=x.images_known)
        if x.exact_prefix_tokens is not None:
            m.inc("exact_prefixes_total", _compared(x.exact_prefix_tokens, x.usage))


def _kind_of(ended: _Ended) -> _Kind:
    x = ended.exchange
    return _Kind(
        x.dialect,
        x.outcome,
        x.code,
        x.rule,
        x.tenant,
        x.stream,
        x.backend,
        x.engine,
        x.decision_reason,
        x.family,
        x.images,
        Change.REMOTE.value in x.changes,
        tuple(ended.stages),
    )


def _compared(expected_tokens: int, usage: Usage | None) -> str:
    """A prefix known from KV events against what the engine says it took from its cache."""
    if usage is None or usage.cached_tokens is None:
        return "unchecked"
    if usage.cached_tokens == expected_tokens:
        return "as_told"
    return "more" if usage.cached_tokens > expected_tokens else "less"
