from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.merged import MergedMetrics

PAGE = """\
# HELP vlmgw_requests_total Requests.
# TYPE vlmgw_requests_total counter
vlmgw_requests_total{{outcome="ok"}} {ok}
# HELP vlmgw_inflight In flight, "now".
# TYPE vlmgw_inflight gauge
vlmgw_inflight {inflight}
vlmgw_inflight{{dialect="a b{{}}"}} 1.0
# HELP vlmgw_seconds Took.
# TYPE vlmgw_seconds histogram
vlmgw_seconds_bucket{{le="1.0"}} {ok}
vlmgw_seconds_bucket{{le="+Inf"}} {ok}
vlmgw_seconds_count {ok}
vlmgw_seconds_sum {total}
"""


def page(ok: float, inflight: float = 0, total: float = 0.1) -> str:
    return PAGE.format(ok=ok, inflight=inflight, total=total)


def values(merged: MergedMetrics) -> dict[str, float]:
    """As Prometheus reads it: name and labels -> value."""
    return {
        sample.name + "".join(f" {k}={v}" for k, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(merged.render())
        for sample in family.samples
    }


def test_counts_are_added_up_and_measures_told_apart() -> None:
    merged = MergedMetrics()
    merged.tell(1, page(3, 7))
    merged.tell(2, page(4, 8, total=0.2))
    found = values(merged)
    assert found["vlmgw_requests_total outcome=ok"] == 7
    assert found["vlmgw_seconds_bucket le=+Inf"] == found["vlmgw_seconds_count"] == 7
    assert abs(found["vlmgw_seconds_sum"] - 0.3) < 1e-9
    assert (found["vlmgw_inflight process=1"], found["vlmgw_inflight process=2"]) == (7, 8)
    assert found["vlmgw_inflight dialect=a b{} process=2"] == 1
    assert "vlmgw_inflight" not in found
    assert merged.render().count("# TYPE vlmgw_requests_total counter") == 1


def test_who_is_gone_leaves_its_counts_and_takes_its_measures() -> None:
    merged = MergedMetrics()
    merged.tell(1, page(3))
    merged.tell(2, page(4))
    merged.bury(2)
    merged.bury(9)
    found = values(merged)
    assert found["vlmgw_requests_total outcome=ok"] == found["vlmgw_seconds_count"] == 7
    assert not [name for name in found if "process=2" in name]
    merged.tell(2, page(1, 5))
    assert values(merged)["vlmgw_requests_total outcome=ok"] == 8
    assert values(merged)["vlmgw_inflight process=2"] == 5
    merged.bury(1)
    merged.bury(2)
    assert values(merged)["vlmgw_seconds_count"] == 8


def test_who_does_not_answer_in_time_still_counts() -> None:
    merged = MergedMetrics()
    merged.tell(1, page(3))
    merged.tell(1, None)
    assert values(merged) == {
        "vlmgw_requests_total outcome=ok": 3,
        "vlmgw_seconds_bucket le=1.0": 3,
        "vlmgw_seconds_bucket le=+Inf": 3,
        "vlmgw_seconds_count": 3,
        "vlmgw_seconds_sum": 0.1,
    }
    merged.tell(1, page(4))
    assert values(merged)["vlmgw_inflight process=1"] == 0


def test_what_is_no_number_stays_as_prometheus_writes_it() -> None:
    merged = MergedMetrics()
    head = "# HELP vlmgw_a A.\n# TYPE vlmgw_a gauge\n"
    merged.tell(1, f'{head}vlmgw_a{{b="1"}} +Inf\nvlmgw_a{{b="2"}} -Inf\nvlmgw_a{{b="3"}} NaN\n')
    samples = [
        f'vlmgw_a{{process="1",b="{number}"}} {value}' for number, value in enumerate(("+Inf", "-Inf", "NaN"), 1)
    ]
    assert merged.render() == head + "\n".join(samples) + "\n"


def test_who_left_and_comes_back_begins_anew() -> None:
    merged = MergedMetrics()
    for told, seen in ((page(9), 9), (page(2), 9), ("", None), (page(2), 2)):
        merged.tell(1, told)
        assert values(merged).get("vlmgw_requests_total outcome=ok") == seen
