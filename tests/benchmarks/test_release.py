"""The model of an engine's steps: holding back never loses a request, and wins nothing worth a default."""

from __future__ import annotations

from collections import deque

import pytest

from benchmarks.release import CLIENTS, HOLDS_MS, LOADS, PENALTIES_MS, arrivals, engine, released, run, table
from benchmarks.timing import Options


def test_a_group_goes_together_and_nobody_waits_longer_than_the_bound() -> None:
    came = [(0.0, 1), (0.004, 1), (0.011, 1), (0.012, 1)]
    assert released(came, 0.01) == pytest.approx([0.01, 0.01, 0.021, 0.021])
    assert released(came, 0.0) == [at for at, _ in came]


def test_a_lone_request_takes_its_steps() -> None:
    outcome = engine(deque([(0.0, (0.0, 1000))]), 0.0)
    assert outcome.first_mean_s == pytest.approx(0.0125 + 0.1)
    assert outcome.prefill_steps == 1


def test_every_run_is_told() -> None:
    report = run(Options(rounds=200))
    rows = report["rows"]
    assert isinstance(rows, list)
    assert len(rows) == len(PENALTIES_MS) * len(HOLDS_MS) * (len(LOADS) + len(CLIENTS))
    assert len(table(report)) == len(rows) + 2
    assert len(arrivals(1.0, 10, seed=1)) == 10
