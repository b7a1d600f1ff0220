"""The measured tables of docs/comparison.md: ``python -m benchmarks.peers.page [REPORT.json ...]``.

A report (`python -m benchmarks peers --json`), or several of different parts, is stored as
``benchmarks/results/peers.json`` and its tables are written between the page's marks; without one the stored report is
used. A test compares page and stored report. Everything outside the marks is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.bars import chart
from benchmarks.peers.report import affinity_rows, failure_rows, markdown, memory_rows, ratio_rows, speed_rows

_ROOT = Path(__file__).parent.parent.parent
PAGE = _ROOT / "docs" / "comparison.md"
RESULTS = _ROOT / "benchmarks" / "results" / "peers.json"
FIGURE = _ROOT / "docs" / "img" / "peers.svg"
BEGIN = "<!-- measured: python -m benchmarks.peers.page writes this; do not edit -->"
END = "<!-- end of measured -->"
_SECTIONS = (
    ("CPU and latency", "--skip affinity,rss,failure,recovery", speed_rows),
    ("As ratios", "the same run", ratio_rows),
    ("Where pictures go", "--only affinity", affinity_rows),
    ("Memory", "--only rss", memory_rows),
    ("When something is wrong", "--only failure,recovery", failure_rows),
)


def merged(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Reports of different parts as one; what was found of a part is the last one's, when and where the first one's."""
    first = reports[0]
    whole = {name: value for report in reports for name, value in report.items()}
    costs = {name: cell for report in reports for name, cell in report["costs"].items()}
    missing = {name: why for report in reports for name, why in report["missing"].items()}
    return {
        **whole,
        "costs": costs,
        "missing": missing,
        **{name: first[name] for name in ("rounds", "date", "machine")},
    }


def measured(report: Mapping[str, Any]) -> str:
    """The text between the marks."""
    parts = [_dated(report), ""]
    parts += [f"Left out, since it could not be had: {name} ({why})." for name, why in report["missing"].items()]
    for title, command, rows_of in _SECTIONS:
        rows = rows_of(report)
        if len(rows) > 1:
            parts += [f"### {title}", "", *_told(command), *markdown(rows), ""]
    return "\n".join(parts)


def _dated(report: Mapping[str, Any]) -> str:
    machine = report["machine"]
    return (
        f"Run on {report['date']}: {machine['cpu']}, {machine['cpus']} CPUs shared with other work (load "
        f"{machine['load_average_1min']}), Python {machine['python']}, Linux {machine['kernel']}; medians of "
        f"{report['rounds']} interleaved rounds."
    )


def _told(command: str) -> list[str]:
    return [f"`python -m benchmarks peers {command}`", ""] if command.startswith("--") else []


def with_measured(page: str, report: Mapping[str, Any]) -> str:
    """The page with these tables in place of those between its marks. Raises ValueError if it has no marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for what was measured")
    return f"{before}{BEGIN}\n\n{measured(report)}\n{END}{after}"


def main() -> None:
    """Store the report if one is given; write page and figure."""
    if len(sys.argv) > 1:
        whole = merged([json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]])
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    report = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(with_measured(PAGE.read_text(encoding="utf-8"), report), encoding="utf-8")
    FIGURE.write_text(chart(report), encoding="utf-8")


if __name__ == "__main__":
    main()
