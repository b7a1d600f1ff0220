"""How commands speak: progress and problems on standard error, results on standard output."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Sequence

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_NO_BREAK = "\N{NO-BREAK SPACE}"
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
    """Print a result for people; numbers are aligned to the right. On a narrow terminal rows become paragraphs."""
    table = Table(title=Text(title), title_justify="left", header_style="bold", box=SIMPLE)
    made = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numeric = bool(made) and all(
            row[index].replace(",", "").replace(".", "").isdigit() for row in made if row[index]
        )
        table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
    for row in made:
        table.add_row(*(Text(cell) for cell in row))  # a str would lose its [lists]: rich takes them for markup
    natural_width = Measurement.get(_results, _results.options.update_width(sys.maxsize), table).maximum
    if natural_width <= _results.width:
        _results.print(table)
        return
    typer.echo(f"{title}\n")
    for row in made:
        typer.echo(_paragraph(columns, row, _results.width))


def _paragraph(columns: Sequence[str], row: Sequence[str], width: int) -> str:
    """A row as text: its first cell, then every other with its column's name, broken only between them."""
    cells = [f"{name} {cell}".replace(" ", _NO_BREAK) for name, cell in zip(columns[1:], row[1:], strict=True) if cell]
    rest = textwrap.fill(
        "; ".join(cells),
        width,
        initial_indent="    ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"  {row[0]}\n{rest}".replace(_NO_BREAK, " ")
