"""The simulation of growing conversations: batches keep the prefix, keeping the last images loses it every turn."""

from __future__ import annotations

from benchmarks.elision import chart, run, table
from benchmarks.timing import Options


def test_batches_keep_nine_prefixes_in_ten_where_the_last_images_keep_none() -> None:
    report = run(Options(rounds=40))
    assert report["within_budget"], table(report)
    assert chart(report).count("<polyline") == 3
