"""``python -m tests.soak [--minutes M] [--json]``: mixed traffic for so long, and whether anything grew or stayed.

Progress on standard error, the verdict as a table (or JSON) on standard output; exit status 1 for a violation. What is
sent is in ``kinds``, what is judged and why in ``bounds``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.soak.running import Report, soak


def main() -> int:
    """Run it and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        report = asyncio.run(soak(given.minutes, Path(folder), _say))
    assert report.verdict is not None
    lines = [json.dumps(_told(report))] if given.json else table(report)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if report.verdict.held else 1


def table(report: Report) -> list[str]:
    """Lines for people."""
    verdict = report.verdict
    assert verdict is not None
    lines = [f"{'kind':14} {'answers':>8} {'p50 ms':>8} {'p99 ms':>8} {'drift':>6}"]
    lines += [
        f"{each.kind:14} {each.count:8} {each.p50_ms:8} {each.p99_ms:8} {each.drift:6}{_mark(held=each.held)}"
        for each in verdict.latencies
    ]
    lines += ["", *(f"{name:36} {value:10g}" for name, value in report.facts.items()), ""]
    lines += [f"{each.name:36} {each.value:10g}  {each.bound}{_mark(held=each.held)}" for each in verdict.rows]
    lines += [f"not expected: {what} ({count} times)" for what, count in verdict.unexpected.items()]
    lines += [f"the gateway's log: {cause} ({count} times)" for cause, count in report.causes.items()]
    return [*lines, "", f"soak of {report.minutes:g} minutes: {'all held' if verdict.held else 'VIOLATED'}"]


def _mark(*, held: bool) -> str:
    return "" if held else "  <-- violated"


def _told(report: Report) -> dict[str, object]:
    verdict = report.verdict
    assert verdict is not None
    return {
        "soak": "held" if verdict.held else "violated",
        "minutes": report.minutes,
        "facts": report.facts,
        "causes": report.causes,
        **asdict(verdict),
    }


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
