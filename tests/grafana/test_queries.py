"""Every expression of dashboards and rules: it is PromQL, over series that exist, by labels that they have.

What a running Prometheus answers is asked in ``.ci/ops``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import promql_parser as promql
import pytest

from gateway.telemetry.catalogue import DECLARATIONS, Kind
from grafana.builder import Kind as PanelKind
from grafana.dashboards import ANNOTATIONS, DASHBOARDS
from tests.grafana.expressions import COUNTER_FUNCTIONS, nodes, parsed, result_labels, selected
from tests.grafana.known import RECORDED, SERIES, TARGET, declared_name, rules

PANELS = {f"{name}: {panel.title}": panel for name, board in DASHBOARDS.items() for panel in board.panels()}
# What the panel asks all gateways for, or somebody else than a gateway.
FREE_OF_MATCHERS = {"ALERTS": "alerts of everything that is watched"}


def everything() -> Iterator[tuple[str, str]]:
    for name, panel in PANELS.items():
        for query in panel.queries:
            yield f"{name} [{query.legend}]", query.expr
    for title, expr, _ in ANNOTATIONS:
        yield f"annotation {title}", expr
    for file in ("recording.yaml", "alerts.yaml"):
        for rule in rules(file):
            yield rule.get("alert") or rule["record"], rule["expr"]


EXPRESSIONS = dict(everything())


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_series_and_labels_exist_and_only_counters_have_rates(where: str) -> None:
    for asked in selected(parsed(EXPRESSIONS[where])):
        if asked.metric in RECORDED:
            kind, labels = Kind.GAUGE, RECORDED[asked.metric]
        else:
            assert asked.metric in SERIES, f"nobody has {asked.metric}"
            kind, labels = SERIES[asked.metric]
            labels = labels | TARGET
        assert set(asked.matched) <= labels, f"{asked.metric} has {sorted(labels)}"
        assert set(asked.grouped) <= labels, f"{asked.metric} has {sorted(labels)}"
        if asked.function in COUNTER_FUNCTIONS:
            assert kind is Kind.COUNTER, f"{asked.function} of {asked.metric}, which is no counter"
        elif kind is Kind.COUNTER and not asked.metric.endswith("_count"):
            assert "since the start" in where, f"{asked.metric} counts on and on: take its rate"


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_quantiles_keep_their_buckets_and_nothing_is_divided_by_nothing(where: str) -> None:
    for node in nodes(parsed(EXPRESSIONS[where])):
        if isinstance(node, promql.Call) and node.func.name == "histogram_quantile":
            inner = node.args[1]
            assert isinstance(inner, promql.AggregateExpr)
            assert inner.modifier is not None
            assert "le" in inner.modifier.labels
        if isinstance(node, promql.BinaryExpr) and str(node.op) == "/":
            guard = node.rhs.expr if isinstance(node.rhs, promql.ParenExpr) else None
            assert isinstance(guard, promql.BinaryExpr), f"{node.rhs} may be 0"
            assert str(guard.op) == ">"


@pytest.mark.parametrize("name", PANELS)
def test_a_panels_series_are_of_the_chosen_gateways(name: str) -> None:
    for query in PANELS[name].queries:
        for asked in selected(parsed(query.expr)):
            if asked.metric not in FREE_OF_MATCHERS:
                wanted = {"job"} if ":" in asked.metric else {"job", "instance"}
                assert wanted <= set(asked.matched), f"{asked.metric} is not narrowed"
        if "[" in query.expr:
            assert "$__rate_interval" in query.expr


@pytest.mark.parametrize("name", PANELS)
def test_a_legend_names_labels_that_the_result_has(name: str) -> None:
    for query in PANELS[name].queries:
        labels = result_labels(parsed(query.expr))
        named = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
        if PANELS[name].kind is not PanelKind.TABLE and labels is not None:
            assert named == labels, f"{query.expr} has {labels}"


def test_every_metric_is_on_a_panel_or_in_an_alert() -> None:
    used = {declared_name(asked.metric) for expr in EXPRESSIONS.values() for asked in selected(parsed(expr))}
    assert {declared.full_name for declared in DECLARATIONS} - used == set()


@pytest.mark.parametrize("rule", rules("recording.yaml"), ids=lambda rule: rule["record"])
def test_recorded_series_have_the_labels_that_others_ask_of_them(rule: dict[str, str]) -> None:
    labels = result_labels(parsed(rule["expr"]))
    assert (RECORDED[rule["record"]] if labels is None else labels - {"le"}) == RECORDED[rule["record"]]


@pytest.mark.parametrize(
    ("mistaken", "test"),
    [
        ("rate(vlmgw_pool_busy[1m])", test_series_and_labels_exist_and_only_counters_have_rates),
        ("sum by (tenant) (vlmgw_pool_busy)", test_series_and_labels_exist_and_only_counters_have_rates),
        ("vlmgw_pool_bussy", test_series_and_labels_exist_and_only_counters_have_rates),
        ("vlmgw_requests_total", test_series_and_labels_exist_and_only_counters_have_rates),
        ("vlmgw_pool_busy / vlmgw_pool_workers", test_quantiles_keep_their_buckets_and_nothing_is_divided_by_nothing),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # a function's own text has its address in it
)
def test_the_checks_see_mistakes(mistaken: str, test: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPRESSIONS, "mistaken", mistaken)
    assert callable(test)
    with pytest.raises(AssertionError):
        test("mistaken")
