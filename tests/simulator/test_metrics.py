from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.simulator.metrics import Gauges, Histogram, Tally, render_sglang, render_vllm

GAUGES = Gauges(
    model='odd "name"',
    running=2,
    waiting=3,
    kv_usage=0.25,
    used_tokens=400,
    block_size=16,
    kv_blocks=100,
    max_model_len=800,
    mm_queries=7,
    mm_hits=4,
)


def _samples(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (
            sample.name,
            tuple(
                sorted(
                    (key, value)
                    for key, value in sample.labels.items()
                    if key not in {"engine", "model_name", "engine_type", "tp_rank"}
                )
            ),
        ): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_the_vllm_page_parses_and_has_the_names_that_gateways_read() -> None:
    tally = Tally(prompt_tokens=50, generation_tokens=9, prefix_queries=50, prefix_hits=32, queue_rejections=1)
    tally.finished["length"] += 2
    samples = _samples(render_vllm(tally, GAUGES, 1.0))
    assert samples["vllm:num_requests_running", ()] == 2
    assert samples["vllm:num_requests_waiting", ()] == 3
    assert samples["vllm:kv_cache_usage_perc", ()] == 0.25
    assert samples["vllm:prefix_cache_queries_total", ()] == 50
    assert samples["vllm:prefix_cache_hits_total", ()] == 32
    assert samples["vllm:mm_cache_queries_total", ()] == 7
    assert samples["vllm:mm_cache_hits_total", ()] == 4
    assert samples["vllm:request_success_total", (("finished_reason", "length"),)] == 2
    assert samples["vllm:admission_rejections_total", (("reason", "max_num_queued_reqs"),)] == 1
    assert samples["vllm:prompt_tokens_by_source_total", (("source", "local_compute"),)] == 18


def test_the_vllm_page_tells_the_kv_budget_in_labels() -> None:
    page = render_vllm(Tally(), GAUGES, 1.0)
    info = next(family for family in text_string_to_metric_families(page) if family.name == "vllm:cache_config_info")
    labels = info.samples[0].labels
    assert labels["model_name"] == 'odd "name"'
    assert (labels["block_size"], labels["num_gpu_blocks"], labels["kv_cache_size_tokens"]) == ("16", "100", "1600")


def test_the_sglang_page_parses_and_has_the_names_that_gateways_read() -> None:
    samples = _samples(render_sglang(Tally(prefix_queries=50, prefix_hits=25), GAUGES, 1.0))
    assert samples["sglang:num_running_reqs", ()] == 2
    assert samples["sglang:num_queue_reqs", ()] == 3
    assert samples["sglang:token_usage", ()] == 0.25
    assert samples["sglang:max_total_num_tokens", ()] == 1600
    assert samples["sglang:cache_hit_rate", ()] == 0.5
    assert samples["sglang:cached_tokens_total", (("cache_source", "device"),)] == 25


def test_an_unused_cache_has_a_hit_rate_of_nothing() -> None:
    samples = _samples(render_sglang(Tally(), replace(GAUGES, used_tokens=0), 1.0))
    assert samples["sglang:cache_hit_rate", ()] == 0


@pytest.mark.parametrize(("value", "place"), [(0.5, 0), (1.0, 0), (1.5, 1), (9.0, 2)])
def test_a_histogram_counts_into_the_first_bound_not_below(value: float, place: int) -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.observe(value)
    assert histogram.counts[place] == 1
    assert (sum(histogram.counts), histogram.total) == (1, value)


def test_buckets_are_cumulative() -> None:
    tally = Tally()
    for value in (0.002, 0.002, 100.0):
        tally.first_token_s.observe(value)
    samples = _samples(render_vllm(tally, GAUGES, 1.0))
    assert samples["vllm:time_to_first_token_seconds_bucket", (("le", "0.005"),)] == 2
    assert samples["vllm:time_to_first_token_seconds_bucket", (("le", "+Inf"),)] == 3
    assert samples["vllm:time_to_first_token_seconds_count", ()] == 3
