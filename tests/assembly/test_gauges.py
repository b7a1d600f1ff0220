"""The gauges of one moment, and the canary."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import MappingProxyType

from gateway.assembly.gauges import Canary, Moment, backend_notes, gauges, store_observer
from gateway.media.fetch import FetchFacts
from gateway.media.job import PoolFacts
from gateway.media.service import MediaFacts
from gateway.policy.policyset import builtin_policies
from gateway.state.shared import SharedFacts
from gateway.telemetry.catalogue import DECLARATIONS
from gateway.telemetry.metrics import Metrics
from gateway.types import BackendName, BackendView, EngineKind, KvEventSource
from gateway.upstream.breaker import BreakerState
from gateway.upstream.kv_events.service import Followed, KvEvents
from gateway.upstream.kv_events.settings import KvEventsSettings
from gateway.upstream.membership import FleetFacts, SourceState

A = BackendName("a")
POOL = PoolFacts(2, 1, 3, 0.5, 1_000, 2_000, MappingProxyType({"crash": 4}))


def moment(*views: BackendView, inflight: tuple[tuple[float, str], ...] = ()) -> Moment:
    return Moment(
        now_s=100.0,
        inflight=inflight,
        media=MediaFacts(POOL, 10, 20, 1, 2, 30),
        fetched=FetchFacts(40, {"ok": 3, "failed": 1}),
        views=views,
        fleet=FleetFacts(
            (SourceState("dns", ok=False, backends=(A,), failures=2, problem="no answer"),),
            4,
            3,
            {A: BreakerState.OPEN},
            2,
            {(A, "latency"): 1},
        ),
        tenants=builtin_policies().tenants,
        reserved_kv_tokens=lambda _tenant: 77,
        waiting_requests=6,
        shared=SharedFacts(is_degraded=True, replicas=3, expired_count=2),
        log_lines_dropped=5,
        reload_ok=True,
        reloaded_at=1_000.0,
        reloads={"ok": 2, "failed": 1},
        draining=False,
        codec_backend="vips",
    )


def test_every_gauge_is_in_the_catalogue_with_its_labels() -> None:
    view = BackendView(
        BackendName("a"), "http://a", EngineKind.VLLM, engine_waiting=1, kv_use_ratio=0.5, scraped_age_s=2.0
    )
    declared = {metric.name: metric for metric in DECLARATIONS}
    for name, labels, _ in gauges(moment(view)):
        assert len(labels) == len(declared[name].labels), name


def test_what_is_not_known_of_a_backend_is_not_told() -> None:
    names = {name for name, _, _ in gauges(moment(BackendView(BackendName("a"), "http://a", EngineKind.GENERIC)))}
    assert "backend_up" in names
    assert not names & {"backend_queued", "backend_kv_ratio", "backend_telemetry_age_seconds"}


def test_the_oldest_request_is_told_by_its_age() -> None:
    told = {(name, labels): value for name, labels, value in gauges(moment(inflight=((40.0, "x"), (90.0, "x"))))}
    assert told["oldest_request_seconds", ()] == 60.0
    assert told["requests_inflight", ("x",)] == 2
    assert told["pool_restarts_total", ("crash",)] == 4
    assert told["budget_reserved_tokens", ("default",)] == 77
    assert told["budget_waiting_requests", ()] == 6
    assert (told["fetches_total", ("failed",)], told["config_reloads_total", ("ok",)]) == (1, 2)


def test_a_shared_store_is_told_of_where_there_is_one() -> None:
    told = {name: value for name, _, value in gauges(moment())}
    assert (told["state_degraded"], told["state_replicas"], told["reservations_expired_total"]) == (1.0, 3, 2)
    alone = {name for name, _, _ in gauges(replace(moment(), shared=None))}
    assert not {name for name in alone if name.startswith("state_")}


def test_what_a_store_is_asked_is_counted_and_timed() -> None:
    metrics = Metrics()
    store_observer(metrics)("take", "ok", 0.002)
    text = metrics.render().decode()
    assert 'vlmgw_state_operations_total{operation="take",result="ok"} 1.0' in text
    assert 'vlmgw_state_seconds_count{operation="take"} 1.0' in text
    store_observer(metrics)("renew", "timeout", 0.002)
    text = metrics.render().decode()
    assert 'vlmgw_state_operations_total{operation="renew",result="timeout"} 1.0' in text
    assert 'vlmgw_state_seconds_count{operation="other"} 1.0' in text


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_s(self) -> float:
        return self.at_s


async def test_the_canary_beats_while_the_loop_turns() -> None:
    clock = Hands()
    canary = Canary(Metrics(), clock)
    clock.at_s = 5.0
    assert canary.beat_age_s() == 5.0
    beating = asyncio.create_task(canary.keep_beating())
    while canary.beat_age_s() > 0:  # noqa: ASYNC110  # the canary sets no event
        await asyncio.sleep(0)
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


async def test_what_is_known_of_publishers_is_told() -> None:
    source = KvEventSource(0, "tcp://127.0.0.1:1", None, "kv", listens=False)
    follower = KvEvents(KvEventsSettings(listen="tcp://127.0.0.1:0"), lambda: [Followed(A, EngineKind.VLLM, (source,))])
    follower.start()
    try:
        told = {(name, labels): value for name, labels, value in gauges(replace(moment(), kv_events=follower))}
    finally:
        await follower.stop()
    assert (told["kv_event_backends", ("behind",)], told["kv_blocks", ()]) == (1, 0)
    assert told["kv_event_replays_total", ("unanswered",)] == told["kv_events_total", ("stranger",)] == 0
    declared = {metric.name: metric for metric in DECLARATIONS}
    assert all(len(labels) == len(declared[name].labels) for name, labels in told)


def test_backends_that_are_down_or_leaving_are_named_without_their_address() -> None:
    well = BackendView(A, "http://user:password@a", EngineKind.VLLM)
    down, leaving = (
        replace(well, name=BackendName("b"), healthy=False),
        replace(well, name=BackendName("c"), draining=True),
    )
    assert backend_notes([well, leaving]) == ["[+]backends 2 of 2 up", "[!]backend c is draining"]
    assert backend_notes([leaving, well, down]) == [
        "[!]backends 2 of 3 up",
        "[!]backend b is down",
        "[!]backend c is draining",
    ]
    assert backend_notes([]) == ["[!]backends 0 of 0 up"]
