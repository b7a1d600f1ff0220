"""What two scrapes say, of one gateway and of several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.top.exposition import read_samples
from gateway.cli.top.reading import Quantiles, Reading, Scraped, quantile, read

BEFORE = """
vlmgw_requests_total{dialect="openai_chat",outcome="ok"} 100
vlmgw_upstream_requests_total{backend="a",result="ok"} 10
vlmgw_loop_lag_seconds_bucket{le="0.001"} 5
vlmgw_loop_lag_seconds_bucket{le="+Inf"} 5
"""
NOW = """
vlmgw_build_info{codec_backend="vips",version="0.1.0"} 1
vlmgw_requests_total{dialect="openai_chat",outcome="ok"} 120
vlmgw_requests_total{dialect="openai_chat",outcome="shed"} 4
vlmgw_errors_total{code="rate_exceeded"} 4
vlmgw_requests_inflight{dialect="openai_chat"} 3
vlmgw_oldest_request_seconds 2.5
vlmgw_image_tokens_total{family="qwen3_vl",direction="asked"} 4000
vlmgw_image_tokens_total{family="qwen3_vl",direction="sent"} 1000
vlmgw_images_total{action="resized"} 4
vlmgw_image_bytes_total{direction="in"} 4000000
vlmgw_prepared_cache_queries_total 4
vlmgw_prepared_cache_hits_total 1
vlmgw_tokens_total{tenant="acme",kind="prompt"} 200
vlmgw_tokens_total{tenant="acme",kind="completion"} 100
vlmgw_tenant_requests_total{tenant="acme",outcome="ok"} 6
vlmgw_tenant_budget_refusals_total{tenant="acme"} 2
vlmgw_budget_reserved_tokens{tenant="acme"} 300
vlmgw_budget_limit_tokens{tenant="acme"} 1000
vlmgw_pool_workers 2
vlmgw_pool_busy 1
vlmgw_backend_up{backend="a"} 1
vlmgw_backend_inflight{backend="a"} 3
vlmgw_backend_kv_ratio{backend="a"} 0.25
vlmgw_upstream_requests_total{backend="a",result="ok"} 20
vlmgw_upstream_requests_total{backend="a",result="backend_lost"} 2
vlmgw_breaker_backends{state="closed"} 1
vlmgw_loop_lag_seconds_bucket{le="0.001"} 9
vlmgw_loop_lag_seconds_bucket{le="+Inf"} 9
vlmgw_config_last_reload_successful 1
vlmgw_config_last_reload_success_timestamp_seconds 1000
"""


def pair(before: str = BEFORE, now: str = NOW, span_s: float = 2.0) -> tuple[Scraped, Scraped]:
    return Scraped(10.0, read_samples(before)), Scraped(10.0 + span_s, read_samples(now))


def of(*pairs: tuple[Scraped, Scraped]) -> Reading:
    return read(pairs)


def test_counters_become_rates_and_the_rest_is_told_as_it_is() -> None:
    r = of(pair())
    assert (r.gateways, r.versions) == (1, ("0.1.0",))
    assert r.requests == {"ok": 10.0, "shed": 2.0}
    assert r.errors == {"rate_exceeded": 2.0}
    assert (r.inflight, r.oldest_s) == (3, 2.5)
    assert r.image_tokens == {"asked": 2000.0, "sent": 500.0}
    assert r.cache_hit_ratio == 0.25
    assert (r.pool.busy, r.pool.workers) == (1, 2)
    (backend,) = r.backends
    assert (backend.name, backend.up, backend.known, backend.inflight, backend.kv_ratio) == ("a", 1, 1, 3, 0.25)
    assert (backend.per_s, backend.failed_per_s, backend.queued) == (6.0, 1.0, None)
    (tenant,) = r.tenants
    assert (tenant.per_s, tenant.refused_per_s, tenant.tokens_per_s) == (3.0, 1.0, 150.0)
    assert (tenant.reserved_tokens, tenant.limit_tokens) == (300, 1000)
    assert r.loop_lag.p50_s == pytest.approx(0.0005)
    assert r.first_byte == Quantiles(None, None, None)
    assert (r.draining, r.reload_failed, r.reloaded_at, r.store_away) == (0, 0, 1000, 0)


def test_replicas_add_up_and_the_worst_of_one_engine_is_told() -> None:
    other = NOW.replace('up{backend="a"} 1', 'up{backend="a"} 0').replace("0.25", "0.75").replace("s 1000", "s 900")
    r = of(pair(), pair(now=other))
    assert r.requests["ok"] == 20.0
    assert (r.backends[0].up, r.backends[0].known) == (1, 2)
    assert r.backends[0].kv_ratio == 0.75
    assert r.backends[0].inflight == 6
    assert r.tenants[0].limit_tokens == 2000
    assert r.reloaded_at == 900


def test_a_limit_in_a_store_is_one_for_all() -> None:
    shared = NOW + "vlmgw_state_replicas 2\nvlmgw_state_degraded 1\n"
    r = of(pair(now=shared), pair(now=shared))
    assert r.tenants[0].limit_tokens == 1000
    assert r.store_away == 2


def test_a_gateway_that_began_anew_is_no_negative_rate() -> None:
    assert of(pair(before=NOW, now=BEFORE)).requests == {"ok": 50.0}


def test_failed_reloads_are_counted_by_process() -> None:
    """Of several processes behind one admin port each has a sample of its own."""
    name = "vlmgw_config_last_reload_successful"
    assert of(pair(now=f'{name}{{process="1"}} 1\n{name}{{process="2"}} 1\n')).reload_failed == 0
    one_failed = pair(now=f'{name}{{process="1"}} 1\n{name}{{process="2"}} 0\n')
    assert of(one_failed, one_failed, pair()).reload_failed == 2


def test_nobody_is_nothing() -> None:
    r = of()
    assert (r.gateways, r.requests, list(r.backends), r.reload_failed) == (0, {}, [], 0)


def test_quantiles_lie_within_their_bucket() -> None:
    buckets = {0.1: 10.0, 0.5: 90.0, float("inf"): 100.0}
    assert quantile(buckets, 0.5) == pytest.approx(0.3)
    assert quantile(buckets, 0.99) == 0.5
    assert quantile({}, 0.5) is None
    assert quantile({1.0: 0.0, float("inf"): 0.0}, 0.5) is None


@given(st.lists(st.floats(0, 20), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_bounded_by_its_buckets(values: list[float], share: float) -> None:
    bounds = (0.1, 1.0, 10.0, float("inf"))
    buckets = {bound: float(sum(value <= bound for value in values)) for bound in bounds}
    found = quantile(buckets, share)
    assert found is not None
    assert 0 <= found <= 10
