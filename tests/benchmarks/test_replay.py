"""Made-up traffic is replayed whole, and its figure drawn."""

from __future__ import annotations

from typing import cast

from benchmarks.replay import chart, run, table
from benchmarks.timing import Options


def test_every_line_is_replayed() -> None:
    report = run(Options(rounds=60))
    rows = cast("list[dict[str, int]]", report["rows"])
    assert sum(row["requests"] for row in rows) == 60
    assert len(table(report)) == 5
    assert chart(report).count("<g transform") == 5
