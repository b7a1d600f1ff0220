"""From two scrapes of each gateway to what all of them together do: rates, quantiles, sums.

Decided here: which series answer which question, and how replicas add up. A counter that fell began anew; of a number
that several replicas believe of one engine the worst is told. Quantiles are interpolated within a bucket, as
Prometheus' ``histogram_quantile`` does it. Not decided here: how any of it is shown (`screen`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.cli.top.exposition import Samples

_PREFIX = "vlmgw_"
_BOUND = re.compile(r"[+-]?(Inf|[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?)")
# Ends for which nobody blames a backend.
_NO_FAILURE = frozenset({"ok", "not_its_fault"})


@dataclass(frozen=True, slots=True)
class Scraped:
    """One gateway's metrics at one moment, by a clock that only goes forward."""

    at_s: float
    samples: Samples


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Seconds; ``None`` where nothing was observed."""

    p50_s: float | None
    p90_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class BackendRow:
    """One backend. ``up``: how many of the gateways that know it believe it is; ``None``: the engine does not say."""

    name: str
    up: int
    known: int
    per_s: float
    failed_per_s: float
    inflight: float
    queued: float | None
    kv_ratio: float | None


@dataclass(frozen=True, slots=True)
class TenantRow:
    """One tenant. ``reserved_tokens`` of ``limit_tokens`` of KV cache; without a limit ``None``."""

    name: str
    per_s: float
    refused_per_s: float
    tokens_per_s: float
    reserved_tokens: float
    limit_tokens: float | None


@dataclass(frozen=True, slots=True)
class Pool:
    """The image workers of all gateways."""

    workers: float
    busy: float
    queued: float
    line_s: float
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What gateways did between two scrapes. Mappings are per second."""

    gateways: int
    versions: tuple[str, ...]
    requests: Mapping[str, float]
    errors: Mapping[str, float]
    inflight: float
    oldest_s: float
    waiting: float
    first_byte: Quantiles
    overhead: Quantiles
    loop_lag: Quantiles
    tokens: Mapping[str, float]
    image_tokens: Mapping[str, float]
    images: Mapping[str, float]
    image_bytes: Mapping[str, float]
    cache_hit_ratio: float | None
    pool: Pool
    backends: Sequence[BackendRow]
    breakers: Mapping[str, float]
    tenants: Sequence[TenantRow]
    draining: int
    reload_failed: int
    reloaded_at: float | None
    store_away: int


class _Sums:
    """Samples of several gateways, put together by name and one label."""

    def __init__(self, pairs: Sequence[tuple[Scraped, Scraped]]) -> None:
        self._pairs = pairs

    def rates(self, name: str, label: str = "", **wanted: str) -> dict[str, float]:
        """Increase per second by the values of ``label`` (all under ``""`` without one)."""
        found: dict[str, float] = {}
        for before, now in self._pairs:
            span_s = max(now.at_s - before.at_s, 1e-9)
            for key, value in now.samples.items():
                if key[0] != _PREFIX + name or not wanted.items() <= dict(key[1]).items():
                    continue
                earlier = before.samples.get(key, 0.0)
                grown = value - earlier if value >= earlier else value
                place = dict(key[1]).get(label, "")
                found[place] = found.get(place, 0.0) + grown / span_s
        return found

    def rate(self, name: str, **wanted: str) -> float:
        return self.rates(name, **wanted).get("", 0.0)

    def gauges(
        self, name: str, label: str = "", together: Callable[[Iterable[float]], float] = sum
    ) -> dict[str, float]:
        """The latest values by ``label``, those of several gateways put ``together``."""
        found: dict[str, list[float]] = {}
        for _, now in self._pairs:
            for (each, labels), value in now.samples.items():
                if each == _PREFIX + name:
                    found.setdefault(dict(labels).get(label, ""), []).append(value)
        return {place: together(values) for place, values in found.items()}

    def gauge(self, name: str, together: Callable[[Iterable[float]], float] = sum) -> float:
        return self.gauges(name, together=together).get("", 0.0)

    def quantiles(self, name: str) -> Quantiles:
        rates = self.rates(f"{name}_bucket", "le")
        buckets = {float(le): value for le, value in rates.items() if _BOUND.fullmatch(le)}
        return Quantiles(quantile(buckets, 0.5), quantile(buckets, 0.9), quantile(buckets, 0.99))


def quantile(buckets: Mapping[float, float], share: float) -> float | None:
    """The value below which ``share`` of the observations lie; ``buckets``: cumulative counts by upper bound.

    In the last bucket, which has no upper bound, its lower one.
    """
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        return None
    rank = share * buckets[bounds[-1]]
    lower, below = 0.0, 0.0
    for bound in bounds:
        if buckets[bound] >= rank and buckets[bound] > below:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (rank - below) / (buckets[bound] - below)
        lower, below = bound, buckets[bound]
    return lower


def read(pairs: Sequence[tuple[Scraped, Scraped]]) -> Reading:
    """Everything that is shown; ``pairs``: an earlier and a later scrape of each gateway that answers."""
    sums = _Sums(pairs)
    asked, hits = sums.rate("prepared_cache_queries_total"), sums.rate("prepared_cache_hits_total")
    reloaded = sums.gauges("config_last_reload_success_timestamp_seconds", together=min)
    builds = {dict(labels).get("version", "") for _, now in pairs for (name, labels) in now.samples if name == _BUILD}
    return Reading(
        gateways=len(pairs),
        versions=tuple(sorted(builds)),
        requests=sums.rates("requests_total", "outcome"),
        errors={code: rate for code, rate in sums.rates("errors_total", "code").items() if rate > 0},
        inflight=sum(sums.gauges("requests_inflight", "dialect").values()),
        oldest_s=sums.gauge("oldest_request_seconds", max),
        waiting=sums.gauge("budget_waiting_requests"),
        first_byte=sums.quantiles("time_to_first_byte_seconds"),
        overhead=sums.quantiles("overhead_seconds"),
        loop_lag=sums.quantiles("loop_lag_seconds"),
        tokens=sums.rates("tokens_total", "kind"),
        image_tokens=sums.rates("image_tokens_total", "direction"),
        images=sums.rates("images_total", "action"),
        image_bytes=sums.rates("image_bytes_total", "direction"),
        cache_hit_ratio=hits / asked if asked > 0 else None,
        pool=Pool(*(sums.gauge(f"pool_{each}") for each in _POOL)),
        backends=_backends(sums),
        breakers=sums.gauges("breaker_backends", "state", max),
        tenants=_tenants(sums),
        draining=int(sums.gauge("draining")),
        reload_failed=int(sums.gauge("config_last_reload_successful", _zeros)),
        reloaded_at=reloaded.get(""),
        store_away=int(sums.gauge("state_degraded")),
    )


def _zeros(values: Iterable[float]) -> int:
    return sum(value == 0 for value in values)


_BUILD = f"{_PREFIX}build_info"
_POOL = ("workers", "busy", "queued", "line_seconds", "memory_bytes")


def _backends(sums: _Sums) -> list[BackendRow]:
    """By name, since a list that jumps cannot be read."""
    up = sums.gauges("backend_up", "backend")
    known = sums.gauges("backend_up", "backend", lambda values: sum(1 for _ in values))
    inflight = sums.gauges("backend_inflight", "backend")
    queued, kv = (sums.gauges(name, "backend", max) for name in ("backend_queued", "backend_kv_ratio"))
    rates = sums.rates("upstream_requests_total", "backend")
    fine = [sums.rates("upstream_requests_total", "backend", result=result) for result in _NO_FAILURE]
    return [
        BackendRow(
            name=name,
            up=int(up[name]),
            known=int(known[name]),
            per_s=rates.get(name, 0.0),
            failed_per_s=max(0.0, rates.get(name, 0.0) - sum(each.get(name, 0.0) for each in fine)),
            inflight=inflight.get(name, 0.0),
            queued=queued.get(name),
            kv_ratio=kv.get(name),
        )
        for name in sorted(up)
    ]


def _tenants(sums: _Sums) -> list[TenantRow]:
    """Those that are configured or were seen. A limit that replicas share is one; without a store each has its own."""
    requests = sums.rates("tenant_requests_total", "tenant")
    refused = sums.rates("tenant_budget_refusals_total", "tenant")
    tokens = sums.rates("tokens_total", "tenant", kind="prompt")
    made = sums.rates("tokens_total", "tenant", kind="completion")
    reserved = sums.gauges("budget_reserved_tokens", "tenant")
    is_shared = bool(sums.gauges("state_replicas"))
    limits = sums.gauges("budget_limit_tokens", "tenant", max if is_shared else sum)
    return [
        TenantRow(
            name=name,
            per_s=requests.get(name, 0.0),
            refused_per_s=refused.get(name, 0.0),
            tokens_per_s=tokens.get(name, 0.0) + made.get(name, 0.0),
            reserved_tokens=reserved.get(name, 0.0),
            limit_tokens=limits.get(name),
        )
        for name in sorted(requests.keys() | reserved.keys())
    ]
