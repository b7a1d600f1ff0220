"""A case's whole expectation against what was seen: steps, alternatives, everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.case_runner.checks.answer import ANSWER_CHECKS, ANSWER_INFORMS
from tests.case_runner.checks.operations import OPERATIONS_CHECKS, OPERATIONS_INFORMS
from tests.case_runner.checks.surroundings import SURROUNDINGS_CHECKS
from tests.case_runner.checks.table import Problems, Table
from tests.case_runner.observation import Observation, Scope


def _steps(scope: Scope, wanted: list[dict[str, Any]], _: Mapping[str, Any]) -> Problems:
    steps = scope.seen.steps
    if len(steps) != len(wanted):
        yield f"{len(steps)} requests were sent, not {len(wanted)}"
    for number, (exchange, expect) in enumerate(zip(steps, wanted, strict=False), 1):
        for problem in WHOLE.judge(Scope(scope.seen, [exchange]), expect):
            yield f"step {number}: {problem}"


def _alternatives(scope: Scope, wanted: list[dict[str, Any]], _: Mapping[str, Any]) -> Problems:
    """One of them must hold as a whole. The nearest is told: the one of whose keys the fewest are wrong."""
    found = [list(WHOLE.judge(scope, each)) for each in wanted]
    if all(found):
        nearest = min(found, key=len)
        yield f"none of {len(found)} holds; the nearest: {'; '.join(nearest[:3])}"


WHOLE: Table[Scope] = Table(
    "",
    {
        **ANSWER_CHECKS,
        **SURROUNDINGS_CHECKS,
        **OPERATIONS_CHECKS,
        "steps": _steps,
        "alternatives": _alternatives,
    },
    {**ANSWER_INFORMS, **OPERATIONS_INFORMS},
)


def judge(seen: Observation, expect: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a case."""
    return list(WHOLE.judge(Scope(seen, seen.exchanges), expect))
