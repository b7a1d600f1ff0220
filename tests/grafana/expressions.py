"""Reads PromQL: which metrics an expression asks for, by which labels, and what functions do to them.

Decided here: what is looked at, and that Grafana's own words become values first. Not decided here: what is right
(``test_queries``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as promql

VARIABLES = {"__rate_interval": "1m", "job": ".*", "instance": ".*", "tenant": ".*", "backend": ".*", "engines": ".*"}
COUNTER_FUNCTIONS = {"rate", "increase", "irate", "resets"}
_VARIABLE = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True)
class Selected:
    """One selector: its metric, its matchers' labels, the function right around it, and the labels that are asked of it
    by the aggregations around it. ``le`` is kept where a quantile wants it."""

    metric: str
    matched: tuple[str, ...]
    function: str | None
    grouped: tuple[str, ...]


def with_values(expr: str, **values: str) -> str:
    """The expression with a value for each variable. Raises KeyError for one that no dashboard has."""
    known = VARIABLES | values
    return _VARIABLE.sub(lambda found: known[found[1]], expr)


def parsed(expr: str) -> promql.Expr:
    """Raises ValueError for what is no PromQL."""
    return promql.parse(with_values(expr))


def nodes(expr: promql.Expr) -> Iterator[promql.Expr]:
    """The expression and all within."""
    yield expr
    for inner in _inside(expr):
        yield from nodes(inner)


def _inside(expr: promql.Expr) -> list[promql.Expr]:
    if isinstance(expr, promql.BinaryExpr):
        return [expr.lhs, expr.rhs]
    if isinstance(expr, promql.Call):
        return list(expr.args)
    if isinstance(expr, promql.MatrixSelector):
        return [expr.vector_selector]
    if isinstance(expr, promql.AggregateExpr | promql.ParenExpr | promql.UnaryExpr | promql.SubqueryExpr):
        return [expr.expr]
    return []


def selected(expr: promql.Expr, function: str | None = None, grouped: tuple[str, ...] = ()) -> Iterator[Selected]:
    """Every selector with what is around it."""
    if isinstance(expr, promql.VectorSelector):
        matched = tuple(matcher.name for matcher in expr.matchers.matchers)
        yield Selected(str(expr.name), matched, function, grouped)
        return
    if isinstance(expr, promql.Call):
        function = expr.func.name
    elif isinstance(expr, promql.AggregateExpr) and expr.modifier is not None:
        grouped = (*grouped, *expr.modifier.labels)
    elif not isinstance(expr, promql.MatrixSelector):
        function = None
    for inner in _inside(expr):
        yield from selected(inner, function, grouped)


def result_labels(expr: promql.Expr) -> set[str] | None:
    """The labels that a result has; ``None`` where it keeps those of its series."""
    if isinstance(expr, promql.ParenExpr):
        return result_labels(expr.expr)
    if isinstance(expr, promql.AggregateExpr):
        return set() if expr.modifier is None else set(expr.modifier.labels)
    if isinstance(expr, promql.Call):
        if expr.func.name == "histogram_quantile":
            inner = result_labels(expr.args[1])
            return None if inner is None else inner - {"le"}
        return result_labels(expr.args[0]) if expr.args else set()
    if isinstance(expr, promql.BinaryExpr):
        if isinstance(expr.lhs, promql.NumberLiteral):
            return result_labels(expr.rhs)
        return result_labels(expr.lhs)
    return None
