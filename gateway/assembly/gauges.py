"""What the gateway is at one moment, as numbers: every gauge of /metrics, and the canary that measures the loop's lag.

Decided here: which fact is which gauge, and that ``/readyz?verbose`` names the backends that ``backend_up`` counts out.
Not decided here: what a gauge means (``telemetry.catalogue``), the facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway import __version__
from gateway.dialects import DIALECTS
from gateway.media.confine import Layer
from gateway.media.fetch import FetchFacts
from gateway.media.service import MediaFacts
from gateway.policy.policyset import TenantPolicy
from gateway.ports import Clock
from gateway.state.scripts import TAKE
from gateway.state.shared import Observe, SharedFacts
from gateway.telemetry.catalogue import OTHER
from gateway.telemetry.metrics import Metrics, Sample
from gateway.telemetry.trace import NO_SPANS, SpanTally
from gateway.types import BackendView, TenantId
from gateway.upstream.breaker import BreakerState
from gateway.upstream.kv_events.service import FollowedFacts, KvEvents
from gateway.upstream.membership import FleetFacts

# Each beat wakes an idle process, at some 0.1 ms of CPU: twenty a second are little, and see every stall worth a name.
CANARY_PERIOD_S = 0.050
STALL_S = 0.050


class Canary:
    """Beats for liveness and measures how late a short sleep comes back."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._beat_s = clock.now_s()

    def beat_age_s(self) -> float:
        """Seconds since the loop last came round; asked from the admin thread."""
        return self._clock.now_s() - self._beat_s

    async def keep_beating(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            asked_s = loop.time()
            await asyncio.sleep(CANARY_PERIOD_S)
            lag_s = max(0.0, loop.time() - asked_s - CANARY_PERIOD_S)
            self._beat_s = self._clock.now_s()
            self._metrics.observe("loop_lag_seconds", lag_s)
            if lag_s > STALL_S:
                self._metrics.inc("loop_stalls_total")


def store_observer(metrics: Metrics) -> Observe:
    """Counts and times what a shared store is asked; timed apart is only what requests wait for."""

    def observe(operation: str, result: str, seconds: float) -> None:
        metrics.inc("state_operations_total", operation, result)
        metrics.observe("state_seconds", seconds, operation if operation == TAKE.name else OTHER)

    return observe


def hint_counter(metrics: Metrics) -> Callable[[str, int], None]:
    """Counts images whose place was told to replicas or heard from them."""
    return lambda direction, images: metrics.inc("image_hints_total", direction, by=images)


@dataclass(frozen=True, slots=True)
class Moment:
    """The facts behind one scrape. ``inflight`` holds (start by the clock, dialect) of every exchange."""

    now_s: float
    inflight: Sequence[tuple[float, str]]
    media: MediaFacts
    fetched: FetchFacts
    views: Sequence[BackendView]
    fleet: FleetFacts
    tenants: Mapping[TenantId, TenantPolicy]
    reserved_kv_tokens: Callable[[TenantId], int]
    waiting_requests: int
    shared: SharedFacts | None
    log_lines_dropped: int
    reload_ok: bool
    reloaded_at: float
    reloads: Mapping[str, int]
    draining: bool
    codec_backend: str
    kv_events: KvEvents | None = None
    spans: SpanTally = NO_SPANS


def gauges(moment: Moment) -> Iterator[Sample]:
    """Every gauge's samples: its name in the catalogue, its labels, its value."""
    for name in {name for _, name in moment.inflight} | {dialect.name for dialect in DIALECTS}:
        yield "requests_inflight", (name,), sum(1 for _, each in moment.inflight if each == name)
    ages_s = (moment.now_s - started_s for started_s, _ in moment.inflight)
    yield "oldest_request_seconds", (), max(ages_s, default=0.0)
    yield from _media_gauges(moment.media)
    yield "fetched_cache_bytes", (), moment.fetched.kept_bytes
    for result, count in moment.fetched.results.items():
        yield "fetches_total", (result,), count
    yield "log_lines_dropped_total", (), moment.log_lines_dropped
    yield "budget_waiting_requests", (), moment.waiting_requests
    yield from _tenant_gauges(moment)
    if moment.shared is not None:
        yield "state_degraded", (), float(moment.shared.is_degraded)
        yield "state_replicas", (), moment.shared.replicas
        yield "reservations_expired_total", (), moment.shared.expired_count
    yield from _backend_gauges(moment.views)
    if moment.kv_events is not None:
        yield from _kv_event_gauges(moment.kv_events.facts(), moment.kv_events.strangers)
    yield "traced_requests_total", ("sent",), moment.spans.sent
    yield "traced_requests_total", ("failed",), moment.spans.failed
    yield "traced_requests_total", ("dropped",), moment.spans.dropped
    yield from _source_gauges(moment)
    yield from _standing_gauges(moment.fleet)
    yield "config_last_reload_successful", (), float(moment.reload_ok)
    yield "config_last_reload_success_timestamp_seconds", (), moment.reloaded_at
    for result, count in moment.reloads.items():
        yield "config_reloads_total", (result,), count
    yield "draining", (), float(moment.draining)
    yield "build_info", (__version__, moment.codec_backend), 1.0


def _kv_event_gauges(followed: Sequence[FollowedFacts], strangers: int) -> Iterator[Sample]:
    fresh = sum(each.fresh for each in followed)
    yield "kv_event_backends", ("fresh",), fresh
    yield "kv_event_backends", ("behind",), len(followed) - fresh
    yield "kv_blocks", (), sum(each.blocks for each in followed)
    yield "kv_index_bytes", (), sum(each.byte_count for each in followed)
    yield "kv_events_total", ("applied",), sum(each.events for each in followed)
    yield "kv_events_total", ("ignored",), sum(each.ignored for each in followed)
    yield "kv_events_total", ("stranger",), strangers
    yield "kv_event_gaps_total", (), sum(each.gaps for each in followed)
    yield "kv_event_replays_total", ("asked",), sum(each.replays for each in followed)
    yield "kv_event_replays_total", ("unanswered",), sum(each.failed_replays for each in followed)
    yield "kv_event_restarts_total", (), sum(each.restarts for each in followed)


def _media_gauges(media: MediaFacts) -> Iterator[Sample]:
    pool = media.pool
    yield "pool_workers", (), pool.workers
    yield "pool_busy", (), pool.busy
    yield "pool_queued", (), pool.queued
    yield "pool_line_seconds", (), pool.queued_s
    yield "pool_reserved_bytes", (), pool.predicted_bytes
    yield "pool_memory_bytes", (), pool.rss_bytes
    for reason, count in pool.restarts.items():
        yield "pool_restarts_total", (reason,), count
    for layer in Layer:
        yield "sandbox_layer", (layer.value,), float(layer in pool.box.active)
    yield "body_memory_bytes", (), media.slab_in_use_bytes
    yield "prepared_cache_bytes", (), media.prepared_bytes
    yield "shared_cache_queries_total", (), media.tier_queries
    yield "shared_cache_hits_total", (), media.tier_hits


def _tenant_gauges(moment: Moment) -> Iterator[Sample]:
    for name, tenant in moment.tenants.items():
        yield "budget_reserved_tokens", (name,), moment.reserved_kv_tokens(name)
        limit = tenant.settings["kv_tokens_in_flight"].value
        if isinstance(limit, int):
            yield "budget_limit_tokens", (name,), limit


def _source_gauges(moment: Moment) -> Iterator[Sample]:
    for state in moment.fleet.sources:
        yield "backend_source_ok", (state.name,), float(state.ok)
        yield "backend_source_backends", (state.name,), len(state.backends)
        yield "backend_source_failures_total", (state.name,), state.failures
    yield "backends_changed_total", ("joined",), moment.fleet.joined
    yield "backends_changed_total", ("left",), moment.fleet.left


def _backend_gauges(views: Sequence[BackendView]) -> Iterator[Sample]:
    for view in views:
        label = (view.name,)
        yield "backend_up", label, float(view.healthy)
        yield "backend_inflight", label, view.inflight_requests
        if view.engine_waiting is not None:
            yield "backend_queued", label, view.engine_waiting
        if view.kv_use_ratio is not None:
            yield "backend_kv_ratio", label, view.kv_use_ratio
        if view.scraped_age_s is not None:
            yield "backend_telemetry_age_seconds", label, view.scraped_age_s


def backend_notes(views: Sequence[BackendView]) -> list[str]:
    """Lines for ``/readyz?verbose``: how many backends are up, and the name of each that is down or leaving.

    A backend's address stays out: it may hold a password.
    """
    up_count = sum(view.healthy for view in views)
    down = [f"[!]backend {view.name} is down" for view in views if not view.healthy]
    leaving = [f"[!]backend {view.name} is draining" for view in views if view.healthy and view.draining]
    return [f"[{'+' if views and not down else '!'}]backends {up_count} of {len(views)} up", *down, *leaving]


def _standing_gauges(facts: FleetFacts) -> Iterator[Sample]:
    states = list(facts.breakers.values())
    for state in BreakerState:
        yield "breaker_backends", (state.value,), states.count(state)
    yield "upstream_cut_total", (), facts.cut_count
    for (name, reason), count in facts.ejections.items():
        yield "backend_ejections_total", (name, reason), count
