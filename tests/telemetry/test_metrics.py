"""The page that a scraper reads: every metric of the table, each series once, sums that add up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.catalogue import DECLARATIONS, Kind
from gateway.telemetry.metrics import Metrics, Sample


def samples() -> Iterator[Sample]:
    for declaration in DECLARATIONS:
        if declaration.sampled:
            yield declaration.name, tuple(f"{label}-value" for label in declaration.labels), 1.5


def filled() -> Metrics:
    metrics = Metrics()
    metrics.sample(samples)
    for declaration in DECLARATIONS:
        labels = tuple(f"{label}-value" for label in declaration.labels)
        if declaration.sampled:
            continue
        if declaration.kind is Kind.COUNTER:
            metrics.inc(declaration.name, *labels, by=2)
        else:
            metrics.observe(declaration.name, 0.02, *labels)
    return metrics


def test_a_scraper_reads_every_metric_with_its_help_and_type() -> None:
    text = filled().render().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for declaration in DECLARATIONS:
        family = families[declaration.full_name.removesuffix("_total")]
        assert family.type == declaration.kind.value
        assert family.documentation == declaration.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(declaration.labels)
    assert "_created" not in text


@given(st.lists(st.floats(0, 100), max_size=60))
def test_values_put_in_together_count_as_each_by_itself(values: list[float]) -> None:
    """Values on a bound, too: they belong below it."""
    bounds = next(each.buckets for each in DECLARATIONS if each.name == "stage_duration_seconds")
    together, apart = Metrics(), Metrics()
    for some in (values, [*values, *bounds, *bounds]):
        together.observe_all("stage_duration_seconds", some, "read")
        for value in some:
            apart.observe("stage_duration_seconds", value, "read")
    assert told(together) == pytest.approx(told(apart))


def test_a_series_begins_with_its_first_value() -> None:
    metrics = Metrics()
    metrics.observe_all("stage_duration_seconds", [], "read")
    assert not told(metrics)
    with pytest.raises(ValueError, match="labels"):
        metrics.observe_all("stage_duration_seconds", [1.0], "read", "more")


def told(metrics: Metrics) -> dict[str, float]:
    """All samples of the stages' durations."""
    families = text_string_to_metric_families(metrics.render().decode())
    samples = [sample for family in families for sample in family.samples if "stage_duration" in sample.name]
    return {f"{sample.name} {sorted(sample.labels.items())}": sample.value for sample in samples}


def test_who_asks_for_openmetrics_gets_it_with_the_traces_behind_slow_requests() -> None:
    metrics = Metrics()
    for seconds, trace in ((0.3, "a" * 32), (0.4, "b" * 32), (45.0, "c" * 32)):
        metrics.observe("request_duration_seconds", seconds, "openai_chat", "true")
        metrics.exemplify("request_duration_seconds", seconds, "openai_chat", "true", trace_id=trace)
    text, kind = metrics.exposition("")
    assert kind.startswith("text/plain")
    assert b"trace_id" not in text
    text, kind = metrics.exposition("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3")
    assert kind.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    parsed = openmetrics(text.decode())  # type: ignore[no-untyped-call]  # the library's parser has no types
    families = {family.name: family for family in parsed}
    told = {
        sample.labels["le"]: (sample.exemplar.labels["trace_id"][0], sample.exemplar.value)
        for sample in families["vlmgw_request_duration_seconds"].samples
        if sample.exemplar is not None
    }
    assert told == {"0.5": ("b", 0.4), "60.0": ("c", 45.0)}


@pytest.mark.parametrize("version", ["banana", "", "1..", "9.9.9", "\u00b2"])
def test_whatever_a_scraper_accepts_it_gets_a_page(version: str) -> None:
    text, kind = Metrics().exposition(f"application/openmetrics-text;version={version};q=x,text/plain;escaping=")
    assert kind.partition(";")[0] in {"text/plain", "application/openmetrics-text"}
    assert b"vlmgw_" in text


def test_no_series_stands_twice_on_the_page() -> None:
    lines = [line.rsplit(" ", 1)[0] for line in filled().render().decode().splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))


def test_counters_add_up_and_buckets_are_cumulative() -> None:
    metrics = Metrics()
    metrics.inc("loop_stalls_total")
    metrics.inc("errors_total", "not_json", by=2)
    metrics.inc("errors_total", "not_json")
    for value in (0.0005, 0.02, 100.0):
        metrics.observe("loop_lag_seconds", value)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }
    assert found["vlmgw_loop_stalls_total",] == 1
    assert found["vlmgw_errors_total", "not_json"] == 3
    assert found["vlmgw_loop_lag_seconds_bucket", "0.001"] == 1
    assert found["vlmgw_loop_lag_seconds_bucket", "0.025"] == 2
    assert found["vlmgw_loop_lag_seconds_bucket", "+Inf"] == 3


def test_series_of_who_has_left_are_forgotten() -> None:
    metrics = Metrics()
    names = {"a", "b"}
    metrics.sample(tuple, backend=lambda: names)
    for backend in ("a", "b"):
        metrics.inc("upstream_requests_total", backend, "ok")
    names.discard("b")
    text = metrics.render().decode()
    assert 'upstream_requests_total{backend="a",result="ok"} 1.0' in text
    assert 'backend="b"' not in text
    metrics.inc("errors_total", "not_json")
    assert 'errors_total{code="not_json"} 1.0' in metrics.render().decode()


def test_a_name_that_is_not_declared_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Metrics().inc("surprises_total")
    with pytest.raises(KeyError):
        Metrics().observe("surprise_seconds", 1.0)


def test_sampled_metrics_are_read_anew_at_every_scrape() -> None:
    metrics = Metrics()
    values = iter((1.0, 2.0))
    metrics.sample(lambda: [("draining", (), next(values))])
    assert b"vlmgw_draining 1.0" in metrics.render()
    assert b"vlmgw_draining 2.0" in metrics.render()
