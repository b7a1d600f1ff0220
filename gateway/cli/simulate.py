"""``vlm-gateway simulate``: access logs under other policies, and what shadow mode found.

Decided here: what is said of lines that cannot be read. Not decided here: how a log is opened (``logfile``), what
becomes of a request (``replay``), how it is shown (``simulated``).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gateway.assembly.wiring import load_world
from gateway.cli.estimate import load_policy_set
from gateway.cli.logfile import MOST_LINE_BYTES, opened
from gateway.cli.output import fail, say, show_json
from gateway.cli.serve import settings_from
from gateway.cli.simulate_report import Read, chart, report, shadow_report, show, show_shadow
from gateway.models.book import ModelBook
from gateway.policy.policyset import PolicySet
from gateway.replay.line import BadLine, Exchange, read_line
from gateway.replay.run import Replayer
from gateway.replay.tally import Prices, Shadowed, Tally, place_of

_BAD_LINES_TOLD = 10


def simulate(  # noqa: PLR0913, PLR0917  # one parameter per flag
    logs: Annotated[list[str], typer.Argument(help="Access logs, plain or gzip; - is standard input.")],
    policies: Annotated[Path | None, typer.Option(help="Directory of the policies to try.", file_okay=False)] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Compare with these policies instead of what the log says became of it.", file_okay=False),
    ] = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Tell what shadow mode found when the log was written; replays nothing.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option(help="gateway.yaml, for its models.", exists=True, dir_okay=False)
    ] = None,
    token_price: Annotated[float, typer.Option(help="Price of a million prompt tokens.", min=0)] = 0.0,
    gpu_hour_price: Annotated[
        float, typer.Option(help="Price of an hour of one H100, for prefill and encoder.", min=0)
    ] = 0.0,
    plot: Annotated[Path | None, typer.Option(help="Draw the comparison into this .svg file.", dir_okay=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Replay access logs (they hold sizes, never content) under other policies: tokens, KV, refusals, money."""
    if shadow == (policies is not None) or (shadow and (against is not None or plot is not None)):
        raise fail("Give --policies DIR to replay under them, or --shadow alone for what shadow mode found.", code=2)
    if plot is not None and plot.suffix != ".svg":
        raise fail(f"{plot}: only .svg files can be drawn.", code=2)
    read = Read()
    if shadow:
        found = _shadowed(logs, read)
        _tell_bad(read)
        show_json(shadow_report(found, read)) if json else show_shadow(found, read)
        return
    assert policies is not None, "checked above"
    settings = settings_from(config, None, {})
    try:
        book = load_world(settings, b"\0" * 32).book
    except ValueError as error:
        raise fail("The configuration cannot be used:", [str(error)], code=2) from None
    old = None if against is None else load_policy_set(against)
    tallies = _replayed(logs, read, book, load_policy_set(policies), old)
    prices = Prices(token_price, gpu_hour_price)
    _tell_bad(read)
    if not tallies:
        raise fail("No exchange that could be replayed was found.", [f"{read.lines} lines were read."])
    if plot is not None:
        plot.write_text(chart(tallies, prices), encoding="utf-8")
    show_json(report(tallies, prices, read)) if json else show(tallies, prices, read)


def _replayed(logs: list[str], read: Read, book: ModelBook, new: PolicySet, old: PolicySet | None) -> list[Tally]:
    after = Replayer(new, book)
    before = after if old is None else Replayer(old, book)
    tallies: dict[tuple[str, str], Tally] = {}
    for place, line in _exchanges(logs, read):
        if line.asked is None:
            read.untold += 1
            continue
        try:
            became, would = before.logged(line) if old is None else before.replay(line), after.replay(line)
        except BadLine as error:
            read.note_bad(f"{place}: {error}")
            continue
        key = place_of(line, tallies)
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = Tally(*key)
        tally.add(became, would)
    return [tallies[key] for key in sorted(tallies)]


def _shadowed(logs: list[str], read: Read) -> list[Shadowed]:
    found: dict[tuple[str, str], Shadowed] = {}
    for _, line in _exchanges(logs, read):
        if not line.shadow:
            continue
        key = place_of(line, found)
        one = found.get(key)
        if one is None:
            one = found[key] = Shadowed(*key)
        one.add(line)
    return [found[key] for key in sorted(found)]


def _exchanges(logs: list[str], read: Read) -> Iterator[tuple[str, Exchange]]:
    """Every exchange with its place; what cannot be read is noted and passed over."""
    for name in logs:
        with opened(name) as stream:
            number = 0
            try:
                while raw := stream.readline(MOST_LINE_BYTES):
                    number += 1
                    read.lines += 1
                    try:
                        line = read_line(raw)
                    except BadLine as error:
                        read.note_bad(f"{name}:{number}: {error}")
                        continue
                    if line is not None:
                        read.exchanges += 1
                        yield f"{name}:{number}", line
            except (EOFError, OSError, zlib.error) as error:
                read.note_bad(f"{name}:{number + 1}: {error}")


def _tell_bad(read: Read) -> None:
    for text in read.bad[:_BAD_LINES_TOLD]:
        say(text)
    if read.bad_lines > _BAD_LINES_TOLD:
        say(f"... and {read.bad_lines - _BAD_LINES_TOLD} more lines that could not be read.")
