"""The table of metrics: names, labels and buckets within the rules, each answering a question, each used."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import gateway
from gateway.telemetry.catalogue import DECLARATIONS, PREFIX, Kind

BY_NAME = {declaration.name: declaration for declaration in DECLARATIONS}
# Label names whose values come from a closed set of ours, or from configuration.
CLOSED = {"dialect", "outcome", "code", "stream", "images", "stage", "action", "change", "direction", "family",
          "layer", "operation", "reason", "kind", "decision", "rule", "result", "engine", "version",
          "codec_backend", "role", "end", "state", "way"}  # fmt: skip
CONFIGURED = {"source", "tenant", "backend"}
CALLERS = Path(gateway.__file__).parent.rglob("*.py")


@cache
def strings_of_callers() -> set[str]:
    """Every name that is counted, observed or sampled anywhere."""
    found = set()
    for path in CALLERS:
        if path.name in {"metrics.py", "catalogue.py"}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


@pytest.mark.parametrize("name", BY_NAME)
def test_every_metric_is_used(name: str) -> None:
    assert name in strings_of_callers()


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(DECLARATIONS)


@pytest.mark.parametrize("name", BY_NAME)
def test_names_follow_the_conventions(name: str) -> None:
    """Base units, counters end in _total and nothing else does (Prometheus' own naming rules)."""
    declaration = BY_NAME[name]
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)
    assert declaration.full_name == PREFIX + name
    assert (declaration.kind is Kind.COUNTER) == name.endswith("_total")
    assert not re.search(r"_(ms|milliseconds|mb|kb|percent|count|sum|bucket|created)$", name)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_metric_answers_a_question(name: str) -> None:
    declaration = BY_NAME[name]
    assert declaration.help.endswith(".")
    assert declaration.question.endswith("?")
    assert declaration.action.endswith(".")


@pytest.mark.parametrize("name", BY_NAME)
def test_labels_come_from_closed_sets_and_tenants_never_meet_buckets(name: str) -> None:
    declaration = BY_NAME[name]
    assert set(declaration.labels) <= CLOSED | CONFIGURED
    if declaration.kind is Kind.HISTOGRAM:
        assert "tenant" not in declaration.labels
        assert 0 < len(declaration.buckets) <= 12
        assert list(declaration.buckets) == sorted(set(declaration.buckets))
    else:
        assert declaration.buckets == ()
