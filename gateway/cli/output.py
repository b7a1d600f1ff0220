"""How commands speak: progress and problems on standard error, results on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

_problems = Console(stderr=True, highlight=False, soft_wrap=True)
# A pipe or a log has no width of its own: columns stay whole there.
_results = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 260)


def say(text: str) -> None:
    """Tell what happens, on standard error."""
    _problems.print(text, markup=False)


def fail(headline: str, problems: Iterable[str] = (), *, code: int = 1) -> typer.Exit:
    """Say what is wrong and return what is to be raised."""
    _problems.print(headline, style="bold red", markup=False)
    for problem in problems:
        _problems.print(f"  {problem}", markup=False)
    return typer.Exit(code)


def show_json(value: object) -> None:
    """Print a result for programs."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a result for people; numbers are aligned to the right."""
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE)
    made = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numeric = bool(made) and all(
            row[index].replace(",", "").replace(".", "").isdigit() for row in made if row[index]
        )
        table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
    for row in made:
        table.add_row(*row)
    _results.print(table)
