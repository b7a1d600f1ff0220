"""Top-level keys of cases whose steps operate on the gateway: crashes, drain, leaks, metrics, the shared store."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from tests.case_runner.checks.table import Check, Problems
from tests.case_runner.metrics import REQUESTS, Scrape
from tests.case_runner.observation import Exchange, Memory, Scope

_MIB = 1 << 20


def _all_in(exchanges: Iterable[Exchange], allowed: int | list[int]) -> Problems:
    wanted = allowed if isinstance(allowed, list) else [allowed]
    seen = list(exchanges)
    if not seen:
        yield "no such request was sent"
    odd = [each.response.status for each in seen if each.response.status not in wanted]
    if odd:
        yield f"{len(odd)} of {len(seen)} answered {sorted({str(each) for each in odd})}, not {allowed}"


def _each_status(scope: Scope, wanted: int | list[int], _: Mapping[str, Any]) -> Problems:
    yield from _all_in((each for each in scope.seen.exchanges if each.role in {"send", "step"}), wanted)


def _first_status(scope: Scope, wanted: list[int], _: Mapping[str, Any]) -> Problems:
    yield from _all_in(scope.seen.sent("async")[:1] or scope.seen.exchanges[:1], wanted)


def _later_status(scope: Scope, wanted: int | list[int], _: Mapping[str, Any]) -> Problems:
    yield from _all_in(scope.seen.sent("send"), wanted)


def _poison_status(scope: Scope, wanted: list[int], _: Mapping[str, Any]) -> Problems:
    sent = scope.seen.sent("send")
    yield from _all_in((each for each in sent if each.request_file == scope.seen.armed_file), wanted)


def _others_status(scope: Scope, wanted: int | list[int], _: Mapping[str, Any]) -> Problems:
    sent = scope.seen.sent("send")
    yield from _all_in((each for each in sent if each.request_file != scope.seen.armed_file), wanted)


def _recovered(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    killed_at_s = scope.seen.killed_at_s
    good = [each.response.ended_at_s for each in scope.seen.sent("send") if each.response.status == 200]
    if killed_at_s is None:
        yield "no worker was killed"
    elif not good:
        yield "no request was served afterwards"
    elif (min(good) - killed_at_s) * 1000 > wanted * scope.seen.time_scale:
        yield f"after {(min(good) - killed_at_s) * 1000:.0f} ms"


def _deaths(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if scope.seen.worker_deaths > wanted:
        yield f"{scope.seen.worker_deaths}, more than {wanted}"
    if scope.seen.armed_file and scope.seen.worker_deaths == 0:
        yield "no worker was killed: the case did not happen"


# --- processes and drain ----------------------------------------------------------------------------------------------


def _processes_after(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if scope.seen.processes.get("after") != wanted:
        yield f"{scope.seen.processes.get('after')}, not {wanted}"


def _port_free(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    if scope.seen.port_free is not wanted:
        yield f"{scope.seen.port_free}"


def _no_orphans(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    left = scope.seen.processes.get("exit")
    if (left == 0) is not wanted:
        yield f"{left} processes are left"


def _stream_complete(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    for exchange in scope.seen.sent("stream"):
        sent = bytes(exchange.calls[0].sent_body) if exchange.calls else b""
        whole = exchange.response.ending == "complete" and bytes(exchange.response.body) == sent and bool(sent)
        if whole is not wanted:
            yield f"{len(exchange.response.body)} of {len(sent)} bytes, {exchange.response.ending}"


def _ready_status(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if scope.seen.gets.get("ready") != wanted:
        yield f"{scope.seen.gets.get('ready')}, not {wanted}"


def _exit_code(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    if scope.seen.exit_code != wanted:
        yield f"{scope.seen.exit_code}, not {wanted}"


def _exit_within(scope: Scope, since_s: float | None, wanted: float) -> Problems:
    if since_s is None or scope.seen.exited_at_s is None:
        yield "it did not exit"
    elif (scope.seen.exited_at_s - since_s) * 1000 > wanted * scope.seen.time_scale:
        yield f"after {(scope.seen.exited_at_s - since_s) * 1000:.0f} ms"


def _exit_after_stream(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    ends = [each.response.ended_at_s for each in scope.seen.sent("stream")]
    yield from _exit_within(scope, max(ends, default=None), wanted)


def _exit_after_second(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    signals = scope.seen.signals_at_s
    yield from _exit_within(scope, signals[1] if len(signals) > 1 else None, wanted)


# --- memory -----------------------------------------------------------------------------------------------------------


def _growth(scope: Scope) -> tuple[Memory, Memory] | None:
    return (scope.seen.memory[0], scope.seen.memory[-1]) if len(scope.seen.memory) > 1 else None


def _rss_growth(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    ends = _growth(scope)
    if ends is None:
        yield "memory was not measured twice"
    elif ends[1].resident_bytes - ends[0].resident_bytes > wanted * _MIB:
        yield f"{(ends[1].resident_bytes - ends[0].resident_bytes) / _MIB:.1f} MB"


def _files_growth(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    ends = _growth(scope)
    if ends is None:
        yield "files were not counted twice"
    elif ends[1].open_files - ends[0].open_files > wanted:
        yield f"{ends[1].open_files - ends[0].open_files}"


# --- metrics ----------------------------------------------------------------------------------------------------------


def _named(scope: Scope, name: str) -> Scrape | None:
    return next((scrape for given, scrape in scope.seen.scrapes if given == name), None)


def _new_series(scope: Scope, wanted: int, _: Mapping[str, Any]) -> Problems:
    before, after = _named(scope, "before"), _named(scope, "after")
    if before is None or after is None:
        yield "there are no two scrapes"
    elif len(new := after.series.keys() - before.series.keys()) > wanted:
        yield f"{len(new)}, for example {min(new)}"


def _no_random_values(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    after = _named(scope, "after")
    if after is None or not scope.seen.random_values:
        yield "nothing random was sent, or there is no scrape"
    elif any(value in after.text for value in scope.seen.random_values) is wanted:
        yield "a random value is in the metrics"


def _never_decrease(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    scrapes = [scrape.counters() for _, scrape in scope.seen.scrapes]
    if len(scrapes) < 2:
        yield "there are no two scrapes"
    for earlier, later in pairwise(scrapes):
        fallen = [key for key, value in earlier.items() if later.get(key, 0.0) < value]
        if bool(fallen) is wanted:
            yield f"{fallen[:1]} decreased"
            return


def _request_delta(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    before = scope.seen.before
    if before is None or not scope.seen.scrapes:
        yield "there are no two scrapes"
        return
    for _name, scrape in scope.seen.scrapes:
        delta = scrape.total(REQUESTS) - before.total(REQUESTS)
        if delta != wanted:
            yield f"{delta:g}, not {wanted}"
            return


# --- the shared store -------------------------------------------------------------------------------------------------


def _sent_ms(scope: Scope) -> list[float]:
    return [each.response.took_ms for each in scope.seen.sent("send")]


def _added(scope: Scope, times_ms: list[float], limit_ms: float, quantile: float) -> Problems:
    if not times_ms or not scope.seen.baseline_ms:
        yield "there is nothing to compare"
        return
    rank = min(len(times_ms) - 1, int(quantile * len(times_ms)))
    added_ms = sorted(times_ms)[rank] - statistics.median(scope.seen.baseline_ms)
    if added_ms > limit_ms * scope.seen.time_scale:
        yield f"{added_ms:.0f} ms"


def _added_p95(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    yield from _added(scope, _sent_ms(scope), wanted, 0.95)


def _added_first(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    yield from _added(scope, _sent_ms(scope)[:10], wanted, 1.0)


def _added_after_breaker(scope: Scope, wanted: float, _: Mapping[str, Any]) -> Problems:
    yield from _added(scope, _sent_ms(scope)[10:], wanted, 0.95)


def _degraded(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    during = _named(scope, "during")
    if during is None or during.is_degraded is not wanted:
        yield "no metric says so"


def _recovers(scope: Scope, wanted: bool, _: Mapping[str, Any]) -> Problems:
    if scope.seen.after is None or scope.seen.after.is_degraded is wanted:
        yield "the metrics still say degraded"


OPERATIONS_CHECKS: dict[str, Check[Scope]] = {
    "each_status": _each_status,
    "first_status_any_of": _first_status,
    "later_each_status": _later_status,
    "poison_each_status_any_of": _poison_status,
    "others_each_status": _others_status,
    "recovered_within_ms": _recovered,
    "worker_deaths_at_most": _deaths,
    "processes_after": _processes_after,
    "port_free": _port_free,
    "no_orphans": _no_orphans,
    "stream_complete": _stream_complete,
    "ready_status": _ready_status,
    "exit_code": _exit_code,
    "exit_within_ms_after_stream": _exit_after_stream,
    "exit_within_ms_after_second": _exit_after_second,
    "rss_growth_mb_at_most": _rss_growth,
    "open_files_growth_at_most": _files_growth,
    "new_series_at_most": _new_series,
    "scrape_must_not_contain_random_values": _no_random_values,
    "counters_never_decrease": _never_decrease,
    "request_counter_delta": _request_delta,
    "added_latency_p95_ms_at_most": _added_p95,
    "added_latency_first_ms_at_most": _added_first,
    "added_latency_p95_after_breaker_ms_at_most": _added_after_breaker,
    "metric_shows_degraded": _degraded,
    "recovers": _recovers,
}
OPERATIONS_INFORMS = {"all_processes": "says what is always done: memory and files are those of all processes"}
