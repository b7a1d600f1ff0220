"""One exchange becomes metrics and one line: which facts count where, what never appears, how many series there are."""

from __future__ import annotations

import io
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.assembly.gauges import hint_counter, store_observer
from gateway.dialects import DIALECTS
from gateway.dialects.openai_chat import OpenAIChat
from gateway.errors import Exhausted, RateExceeded, all_errors
from gateway.journey import travel
from gateway.models.families import FAMILIES
from gateway.quota.claim import Unit
from gateway.record import ExchangeRecord, RequestHead
from gateway.stages.exchange import outcome_of
from gateway.state.scripts import SCRIPTS
from gateway.telemetry.access import access_line
from gateway.telemetry.catalogue import DECLARATIONS, OTHER
from gateway.telemetry.log import JsonLog
from gateway.telemetry.metrics import Metrics, Sample
from gateway.telemetry.record import ExchangeRecorder, image_bucket, upstream_result
from gateway.types import Change, EngineKind, MediumKind, RequestId, TokenEstimate, Usage
from gateway.upstream.outliers import Why
from tests.journey.driver import drive
from tests.journey.scenes import DATA_URL, SETTINGS, body
from tests.journey.test_journey import STAGES
from tests.journey.test_strikes import OUTCOMES

Series = dict[tuple[str, ...], float]
ESTIMATE = TokenEstimate(20, 10, 40, 256, 2, 100)


def exchange(**facts: Any) -> ExchangeRecord:
    base: dict[str, Any] = {
        "request_id": RequestId("r1"),
        "dialect": "openai_chat",
        "path": "/v1/chat/completions",
        "started_s": 10.0,
    }
    return ExchangeRecord(**(base | {"ended_s": 10.5} | facts))


def counted(*records: ExchangeRecord) -> tuple[Series, list[dict[str, Any]]]:
    """Every series of ours with its label values, and the lines that were logged."""
    out = io.BytesIO()
    metrics, log = Metrics(), JsonLog(stream=out)
    recorder = ExchangeRecorder(metrics, log, lambda name: name in {"acme", "default"})
    for record in records:
        recorder.record(record)
    log.close()
    order = {d.full_name.removesuffix("_total"): d.labels for d in DECLARATIONS}
    found = {
        (sample.name.removeprefix("vlmgw_"), *(sample.labels[label] for label in order[family.name])): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
        if family.name in order and "le" not in sample.labels
    }
    return found, [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_plainest_exchange_counts_once_and_is_one_line() -> None:
    series, lines = counted(exchange(tenant="acme", status=200))
    assert series["requests_total", "openai_chat", "ok"] == 1
    assert series["tenant_requests_total", "acme", "ok"] == 1
    assert series["request_duration_seconds_sum", "openai_chat", "false"] == 0.5
    assert not [key for key in series if key[0] in {"errors_total", "images_total", "upstream_requests_total"}]
    assert len(lines) == 1
    assert (lines[0]["event"], lines[0]["status"], lines[0]["total_ms"]) == ("exchange", 200, 500.0)
    assert abs(lines[0]["time"] - time.time()) < 3600
    assert "images" not in lines[0]
    assert "usage" not in lines[0]


def test_whose_fault_a_failure_was_is_not_told_by_tenant() -> None:
    series, _ = counted(*(exchange(tenant="acme", outcome=each) for each in ("bug", "backend_failed", "shed")))
    assert series["tenant_requests_total", "acme", "failed"] == 2
    assert series["tenant_requests_total", "acme", "shed"] == 1
    assert series["requests_total", "openai_chat", "bug"] == 1


def test_a_tenant_that_is_not_configured_is_other() -> None:
    series, _ = counted(exchange(tenant="made-up"), exchange())
    assert series["tenant_requests_total", OTHER, "ok"] == 2


def test_what_waits_for_others_is_not_our_overhead() -> None:
    stages = [("accept", 0.001), ("read", 9.0), ("plan", 0.002), ("forward", 9.0), ("relay", 9.0), ("reserve", 9.0)]
    series, _ = counted(exchange(stages=stages))
    assert series["overhead_seconds_sum", "0"] == pytest.approx(0.003)
    assert series["stage_duration_seconds_sum", "forward"] == 9.0


@pytest.mark.parametrize(("images", "bucket"), [(0, "0"), (1, "1"), (2, "2-4"), (4, "2-4"), (5, "5+"), (100, "5+")])
def test_images_are_bucketed(images: int, bucket: str) -> None:
    assert image_bucket(images) == bucket


def test_images_count_by_what_was_done_and_why() -> None:
    record = exchange(
        images_passed=1, images_shrunk=2, images_recoded=3, changes={"resized": 2, "orientation": 3},
        image_bytes_in=1000, image_bytes_out=100, image_pixels_in=50, image_pixels_out=5, family="qwen2_vl",
        image_tokens_original=500, estimate=ESTIMATE, cache_queries=5, cache_hits=2,
    )  # fmt: skip
    series, (line,) = counted(record)
    actions = {key[1]: value for key, value in series.items() if key[0] == "images_total"}
    assert actions == {"passed": 1, "resized": 2, "reencoded": 3}
    assert series["image_changes_total", "orientation"] == 3
    assert (series["image_bytes_total", "in"], series["image_bytes_total", "out"]) == (1000, 100)
    assert series["image_tokens_total", "qwen2_vl", "asked"] == 500
    assert series["image_tokens_total", "qwen2_vl", "sent"] == 256
    assert (series["prepared_cache_queries_total",], series["prepared_cache_hits_total",]) == (5, 2)
    assert line["images"]["shrunk"] == 2


def test_usage_is_compared_with_the_estimate() -> None:
    usage = Usage(278, 7, cached_tokens=100, image_tokens=256)
    series, (line,) = counted(exchange(tenant="acme", family="qwen2_vl", estimate=ESTIMATE, usage=usage))
    tokens = {key[2]: value for key, value in series.items() if key[0] == "tokens_total"}
    assert tokens == {"prompt": 278, "completion": 7, "cached": 100}
    assert series["estimate_ratio_sum", "qwen2_vl"] == 1.0
    assert "image_token_drift_total" not in {key[0] for key in series}
    assert line["usage"] == {"prompt": 278, "completion": 7, "cached": 100, "image": 256}
    assert line["estimate"]["image"] == 256


def test_drift_is_counted_and_warned_of() -> None:
    record = exchange(family="qwen2_vl", estimate=ESTIMATE, usage=Usage(300, 7, image_tokens=255), backend="a")
    series, lines = counted(record, record)
    assert series["image_token_drift_total", "qwen2_vl"] == 2
    warnings = [line for line in lines if line["event"] == "image_token_drift"]
    assert [(line["estimated"], line["actual"]) for line in warnings] == [(256, 255)]


def test_a_finding_is_told_each_time_with_what_reproduces_it() -> None:
    usage = Usage(300, 7, image_tokens=255)
    inputs = {"sizes": ["448x448"], "checkpoint": "Qwen/Qwen2-VL-7B-Instruct"}
    found = exchange(
        family="qwen2_vl", estimate=ESTIMATE, usage=usage, expected_image_tokens=250, drift_finding="deviates",
        drift_inputs=inputs,
    )  # fmt: skip
    _, lines = counted(found, found)
    told = [line for line in lines if line["event"] == "image_token_drift"]
    assert len(told) == 2
    assert told[0].items() >= {"finding": "deviates", "estimated": 250, "actual": 255, **inputs}.items()


def test_a_backend_of_a_smaller_cap_that_counts_as_it_should_is_no_drift() -> None:
    record = exchange(
        family="qwen2_vl", estimate=ESTIMATE, usage=Usage(300, 7, image_tokens=200), expected_image_tokens=200
    )
    series, _ = counted(record)
    assert "image_token_drift_total" not in {key[0] for key in series}


def test_a_tokenizers_wrong_count_is_warned_of() -> None:
    usage = Usage(278, 7, image_tokens=256)
    for agrees, expected in ((True, []), (None, []), (False, [278])):
        _, lines = counted(exchange(family="qwen2_vl", estimate=ESTIMATE, usage=usage, text_agrees=agrees))
        assert [line["actual"] for line in lines if line["event"] == "text_token_drift"] == expected


def test_an_answer_without_usage_is_unverified_only_when_it_was_one() -> None:
    series, _ = counted(exchange(estimate=ESTIMATE), exchange(estimate=ESTIMATE, outcome="client_gone"))
    assert series["unverified_total", "openai_chat"] == 1


def test_budget_refusals_by_tenant_and_by_rule() -> None:
    granted = exchange(tenant="acme", stages=[("reserve", 0.1)])
    refused = exchange(tenant="acme", outcome="shed", code="rate_limit_exceeded", rule="rates.images")
    series, lines = counted(granted, granted, refused, exchange(tenant="acme", code="not_json", outcome="rejected"))
    assert series["tenant_budget_refusals_total", "acme"] == 1
    assert series["budget_refusals_total", "rates.images"] == 1
    assert lines[2]["rule"] == "rates.images"


def test_upstream_results_and_retries() -> None:
    base = exchange(backend="a", engine="vllm", decision_reason="affinity", stages=[("forward", 0.4)])
    lost = replace(base, outcome="backend_failed", code="backend_lost", retry_reasons=["refused"])
    series, _ = counted(base, replace(base, outcome="client_gone"), lost, replace(base, outcome="backend_refused"))
    results = {key[2]: value for key, value in series.items() if key[0] == "upstream_requests_total"}
    assert results == {"ok": 2, "backend_lost": 1, "backend_refused": 1}
    assert series["upstream_retries_total", "refused"] == 1
    assert series["route_decisions_total", "affinity"] == 4
    assert series["upstream_ttft_seconds_sum", "vllm"] == pytest.approx(1.6)


def test_stripped_fields_are_counted_and_named() -> None:
    series, (line,) = counted(exchange(stripped_fields=("priority", "bootstrap_host")))
    assert series["stripped_fields_total",] == 2
    assert line["stripped"] == ["priority", "bootstrap_host"]


def test_optional_fields_are_absent_rather_than_null() -> None:
    _, (line,) = counted(exchange())
    assert None not in [value for key, value in line.items() if key != "status"]
    _, (line,) = counted(exchange(code="not_json", detail="d", model="m" * 500, stream=True, trace_id="t", attempts=2,
                                  first_byte_s=10.25, findings=["x"]))  # fmt: skip
    assert (line["code"], line["detail"], line["stream"], line["attempts"], line["ttfb_ms"], line["findings"]) == (
        "not_json", "d", True, 2, 250.0, ["x"],
    )  # fmt: skip
    assert len(line["model"]) == 128
    _, (line,) = counted(exchange(path="/" + "x" * 8000))
    assert len(line["path"]) == 256


@pytest.mark.parametrize("name", ["two images", "keep-alive comments, refused", "backend refuses"])
def test_a_line_never_holds_a_payload_a_key_or_a_query(name: str) -> None:
    private = "p-r-i-v-a-t-e"
    setting = replace(SETTINGS[name], headers=(("Authorization", f"Bearer {private}"), ("Cookie", private)))
    images = (DATA_URL + "QUJD",) * len(setting.facts)
    content = json.loads(body(*images, stream=name.startswith("keep"), user=private, tools=[private]))
    for each in content["messages"][0]["content"]:
        if "image_url" in each:
            each["image_url"]["detail"] = private
    content["messages"].append({"role": "system", "content": private})
    setting = replace(
        setting,
        body=json.dumps(content).encode(),
        answers=tuple(replace(answer, pieces=(private.encode(), *answer.pieces)) for answer in setting.answers),
    )
    scene = setting.scene()
    scene.client._head = RequestHead(
        "POST", "/v1/chat/completions", f"key={private}", scene.client.head.headers, None, RequestId("r1")
    )
    drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world()))
    line = msgspec.json.encode(access_line(scene.record, 1.0)).decode()
    assert private not in line
    assert "QUJD" not in line


LEG_ENDS = ("done", "refused", "failed", "remembered", "whole")


def worst_fleet(tenants: int, backends: int) -> bytes:
    """Everything that can be counted has been, for so many tenants and backends that serve a family each."""
    names = [f"tenant-{number}" for number in range(tenants)]
    fleet = [f"backend-{number}" for number in range(backends)]
    metrics, log = Metrics(), JsonLog(stream=io.BytesIO())
    recorder = ExchangeRecorder(metrics, log, lambda name: name in names)
    chat = [dialect.name for dialect in DIALECTS]
    streaming = {"openai_chat", "openai_responses", "anthropic_messages", "openai_completions", "sglang_generate"}
    plain = exchange(
        stages=[(stage, 0.1) for stage in STAGES], first_byte_s=10.1, estimate=replace(ESTIMATE, video_tokens=9),
        usage=Usage(9, 9, 9, 9, 9), changes={change.value: 1 for change in Change}, images_passed=1, images_shrunk=1,
        images_recoded=1, images_omitted=1, stripped_fields=("x",), cache_queries=1, decision_reason="affinity",
        clips={(kind.value, action): 1 for kind in MediumKind for action in ("passed", "sampled", "inlined")},
        retry_reasons=["connect", "refused", "draining", "body_not_sent"],
        legs=dict.fromkeys(itertools.product(("encoder", "prefill"), LEG_ENDS), 1),
    )  # fmt: skip
    for outcome in OUTCOMES:
        for tenant in [*names, "made-up"]:
            recorder.record(replace(plain, tenant=tenant, outcome=outcome))
        for dialect in [*chat, "estimate", "pass_through", "models", "unknown"]:
            has_answer = dialect in {*chat, "pass_through"}
            own = replace(plain, dialect=dialect, outcome=outcome, usage=None)
            for stream in (False, True) if dialect in streaming else (False,):
                recorder.record(replace(own, stream=stream, first_byte_s=10.1 if has_answer else None))
    for tenant in names:
        recorder.record(exchange(tenant=tenant, outcome="shed", code=RateExceeded.code, rule="rates.images"))
    count_failures(recorder, plain, fleet)
    count_the_rest(metrics)
    metrics.sample(lambda: worst_gauges(names, fleet))
    log.close()
    return metrics.render()


def count_failures(recorder: ExchangeRecorder, plain: ExchangeRecord, fleet: Sequence[str]) -> None:
    for unit in Unit:
        for rule in (f"rates.{unit}", f"{unit}_in_flight"):
            recorder.record(exchange(outcome="shed", code=RateExceeded.code, rule=rule))
    for backend, family in zip(fleet, itertools.cycle(FAMILIES), strict=False):
        for engine in EngineKind:
            recorder.record(replace(plain, backend=backend, family=family.name, engine=engine.value))
        for error in all_errors():
            chosen = None if issubclass(error, Exhausted) else backend  # refused before a backend is chosen
            recorder.record(replace(plain, backend=chosen, code=error.code, outcome=outcome_of(error()), rule="r"))


def count_the_rest(metrics: Metrics) -> None:
    for direction in ("told", "heard"):
        hint_counter(metrics)(direction, 1)
    observe = store_observer(metrics)
    for script in SCRIPTS:
        for result in ("ok", "closed", "denied", "down", "refused", "timeout"):
            observe(script.name, result, 0.1)
    for image in ("look", "prepare", "probe", "sample"):
        metrics.observe("pool_task_seconds", 0.1, image)


def worst_gauges(names: Sequence[str], fleet: Sequence[str]) -> Iterator[Sample]:
    """As many series as `gauges` has for such a fleet."""
    yield from (
        (metric.name, (each,), 1.0)
        for metric in DECLARATIONS
        if metric.sampled
        for label, values in (("tenant", names), ("backend", fleet))
        if metric.labels == (label,)
        for each in values
    )
    yield from ((metric.name, (), 1.0) for metric in DECLARATIONS if metric.sampled and not metric.labels)
    yield from (("backend_ejections_total", (each, why.value), 1.0) for each in fleet for why in Why)
    few = {"pool_restarts_total": 12, "sandbox_layer": 4, "requests_inflight": 9, "fetches_total": 5}
    for name, labels in (few | {"config_reloads_total": 2}).items():
        yield from ((name, (str(label),), 1.0) for label in range(labels))


def test_the_worst_fleet_stays_within_two_thousand_series() -> None:
    """Fifty tenants, twenty backends of as many families; all outcomes, codes, stages, changes, and all gauges."""
    lines = [line for line in worst_fleet(50, 20).decode().splitlines() if not line.startswith("#")]
    assert len(lines) <= 2_000


def test_what_is_not_a_backends_fault_is_no_label_of_it() -> None:
    assert upstream_result("ok", None) == upstream_result("client_gone", None) == "ok"
    assert upstream_result("backend_refused", None) == "backend_refused"
    assert upstream_result("backend_failed", "backend_timeout") == "backend_timeout"
    assert upstream_result("rejected", "image_undecodable") == upstream_result("bug", "gateway_bug") == "not_its_fault"


def test_records_are_counted_in_batches_and_before_a_scrape() -> None:
    asked: list[Callable[[], None]] = []
    stream, metrics = io.BytesIO(), Metrics()
    log = JsonLog(stream=stream)
    recorder = ExchangeRecorder(metrics, log, lambda _: False, later=asked.append)
    for _ in range(3):
        recorder.record(ExchangeRecord(RequestId("r"), "openai_chat", "/", 1.0, ended_s=2.0))
    assert len(asked) == 1
    assert b"vlmgw_requests_total{" not in metrics.render()
    recorder.flush()
    assert b'vlmgw_requests_total{dialect="openai_chat",outcome="ok"} 3.0' in metrics.render()
    asked.pop()()
    assert b"} 3.0" in metrics.render()
    recorder.record(ExchangeRecord(RequestId("r"), "openai_chat", "/", 1.0, ended_s=2.0))
    assert len(asked) == 1
    log.close()


@pytest.mark.parametrize(
    ("cached", "result"), [(32, "as_told"), (48, "more"), (16, "less"), (None, "unchecked")], ids=str
)
def test_a_prefix_that_an_engine_told_of_is_held_against_its_own_count(cached: int | None, result: str) -> None:
    usage = Usage(100, 5, cached)
    series, lines = counted(exchange(backend="b", decision_reason="prefix", exact_prefix_tokens=32, usage=usage))
    assert series["exact_prefixes_total", result] == 1
    assert lines[0]["exact_prefix"] == 32


def test_the_line_tells_what_the_decision_expected() -> None:
    told = exchange(backend="b", first_token_expected_s=0.0421, prefix_known_tokens=512)
    line = counted(told)[1][0]
    assert (line["first_token_expected_ms"], line["prefix_known"]) == (42.1, 512)
    assert not {"first_token_expected_ms", "prefix_known"} & counted(exchange())[1][0].keys()
