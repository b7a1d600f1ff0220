"""What a run tells: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from tests.chaos.run import Report

_WIDTH = 190


def as_json(reports: Sequence[Report], seconds: float, seed: int) -> str:
    """One object."""
    held = not any(report.violations for report in reports)
    told = {"held": held, "seed": seed, "seconds": round(seconds, 1), "faults": [asdict(report) for report in reports]}
    return json.dumps(told)


def print_table(reports: Sequence[Report], seconds: float, console: Console | None = None) -> None:
    """One line per fault; violations in full below."""
    console = console or Console(width=_WIDTH, highlight=False)
    table = Table(title="Chaos: what happened, and what held", title_justify="left")
    for name in ("fault", "system"):
        table.add_column(name, no_wrap=True)
    for name in ("asked", "whole", "answer again", "all well", "bound", "descriptors", "MiB", "took"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("errors told")
    table.add_column("held", no_wrap=True)
    for report in reports:
        table.add_row(*_row(report))
    console.print(table)
    for shape, seconds_to_ready in {report.shape: report.started_s for report in reversed(reports)}.items():
        console.print(f"{shape}: ready {seconds_to_ready:.2f} s after the start, beside the others' starts and load")
    for report in reports:
        for note in report.notes:
            console.print(f"{report.name}: {note}", markup=False)
    broken = [(report.name, told) for report in reports for told in report.violations]
    for name, told in broken:
        console.print(f"VIOLATED {name}: {told}", markup=False)
    asked = sum(report.asked for report in reports)
    console.print(f"{len(reports)} faults, {asked} requests, {seconds:.0f} s: {len(broken)} violations")


def _row(report: Report) -> list[str]:
    errors = ", ".join(f"{count} {code}" for code, count in report.errors.items())
    return [
        report.name, report.shape, str(report.asked), str(report.succeeded), _seconds(report.recovered_s),
        _seconds(report.whole_s), f"{report.bound_s:g} s", f"{report.descriptors[0]} → {report.descriptors[1]}",
        f"{report.memory_mib[0]} → {report.memory_mib[1]}", f"{report.seconds:.0f} s", errors,
        "no" if report.violations else "yes",
    ]  # fmt: skip


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.2f} s"
