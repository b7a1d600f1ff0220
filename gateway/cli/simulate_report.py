"""What ``simulate`` shows: tables for people, JSON for programs, a chart.

Decided here: columns, and what is left away where it says nothing. Not decided here: any number (``replay``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.cli.chart import Panel, Series, draw
from gateway.cli.output import say, show_table
from gateway.replay.tally import Prices, Shadowed, Side, Tally

_BAD_LINES_KEPT = 100
_CHARTED = 10


@dataclass(slots=True)
class Read:
    """What was read. ``untold``: exchanges without the sizes that a replay needs (older logs, other paths)."""

    lines: int = 0
    exchanges: int = 0
    untold: int = 0
    bad_lines: int = 0
    bad: list[str] = field(default_factory=list)

    def note_bad(self, text: str) -> None:
        self.bad_lines += 1
        if len(self.bad) < _BAD_LINES_KEPT:
            self.bad.append(text)

    def to_json(self) -> dict[str, object]:
        return {
            "lines": self.lines,
            "exchanges": self.exchanges,
            "without_sizes": self.untold,
            "bad_lines": self.bad_lines,
            "bad": self.bad,
        }


def report(tallies: Sequence[Tally], prices: Prices, read: Read) -> dict[str, object]:
    """Everything, by tenant and task and in total."""
    total = {
        "requests": sum(tally.requests for tally in tallies),
        "compared": sum(tally.compared for tally in tallies),
        "image_tokens": [_sum(tallies, "image_tokens", before=True), _sum(tallies, "image_tokens", before=False)],
        "prompt_tokens": [_sum(tallies, "prompt_tokens", before=True), _sum(tallies, "prompt_tokens", before=False)],
        "refused": [_refusals(tallies, before=True), _refusals(tallies, before=False)],
        "saved": round(sum(tally.saved(prices) for tally in tallies), 6),
    }
    return {"read": read.to_json(), "total": total, "rows": _rows(tallies, prices)}


def _rows(tallies: Sequence[Tally], prices: Prices) -> list[dict[str, Any]]:
    return [
        {
            "tenant": tally.tenant,
            "task": tally.task,
            "requests": tally.requests,
            "compared": tally.compared,
            "unsized": tally.unsized,
            "before": tally.before.to_json(prices),
            "after": tally.after.to_json(prices),
            "images_changed": dict(tally.changes.most_common()),
            "saved": round(tally.saved(prices), 6),
        }
        for tally in tallies
    ]


def show(tallies: Sequence[Tally], prices: Prices, read: Read) -> None:
    """The same as tables."""
    columns = ["tenant", "task", "requests", "image tokens", "after", "", "prompt tokens", "after", "KV GB", "after"]
    columns += ["refused", "after", "shrunk", "after", "left out", "after"]
    is_priced = prices != Prices()
    rows = [_row(tally, prices, is_priced=is_priced) for tally in tallies]
    show_table("Before and after", [*columns, *(["saved"] if is_priced else [])], rows)
    by_rule = [row for tally in tallies for row in _rules(tally)]
    if by_rule:
        show_table("By rule", ("tenant", "task", "rule", "refused before", "after", "images changed"), by_rule)
    say(_summary(tallies, prices, read, is_priced=is_priced))


def _row(tally: Tally, prices: Prices, *, is_priced: bool) -> list[str]:
    before, after = tally.before, tally.after
    row = [tally.tenant, tally.task, f"{tally.requests:,}"]
    row += [f"{before.image_tokens:,}", f"{after.image_tokens:,}", _change(before.image_tokens, after.image_tokens)]
    row += [f"{before.prompt_tokens:,}", f"{after.prompt_tokens:,}"]
    row += [f"{before.kv_bytes / 1e9:,.2f}", f"{after.kv_bytes / 1e9:,.2f}"]
    row += [f"{_refused(before):,}", f"{_refused(after):,}"]
    row += [f"{before.shrunk:,}", f"{after.shrunk:,}", f"{before.omitted:,}", f"{after.omitted:,}"]
    return [*row, _money(tally.saved(prices))] if is_priced else row


def _rules(tally: Tally) -> list[tuple[str, ...]]:
    names = Counter(tally.before.refused) + tally.after.refused + tally.changes
    return [
        (
            tally.tenant,
            tally.task,
            name,
            str(tally.before.refused[name] or ""),
            str(tally.after.refused[name] or ""),
            str(tally.changes[name] or ""),
        )
        for name in sorted(names)
    ]


def _summary(tallies: Sequence[Tally], prices: Prices, read: Read, *, is_priced: bool) -> str:
    was = _sum(tallies, "image_tokens", before=True)
    becomes = _sum(tallies, "image_tokens", before=False)
    text = f"{read.exchanges:,} exchanges in {read.lines:,} lines; {sum(t.compared for t in tallies):,} compared"
    text += f": image tokens {was:,} -> {becomes:,} {_change(was, becomes)}".rstrip()
    text += f", refused {_refusals(tallies, before=True):,} -> {_refusals(tallies, before=False):,}"
    if is_priced:
        text += f", saved {_money(sum(tally.saved(prices) for tally in tallies))}"
    unsized = sum(tally.unsized for tally in tallies) + read.untold
    if unsized:
        text += f"; {unsized:,} without sizes"
    return f"{text}; {read.bad_lines:,} bad line(s)."


def chart(tallies: Sequence[Tally], prices: Prices) -> str:
    """Tokens and refusals before and after, of the tenants and tasks with the most tokens."""
    return chart_of(_rows(tallies, prices), is_priced=prices != Prices())


def chart_of(rows: Sequence[dict[str, Any]], *, is_priced: bool) -> str:
    """`chart`, from the rows of a report."""
    least = sorted((row["before"]["prompt_tokens"] for row in rows), reverse=True)[:_CHARTED][-1:]
    shown = [row for row in rows if [row["before"]["prompt_tokens"]] >= least][:_CHARTED]
    names = [f"{row['tenant']} {row['task']}" for row in shown]
    measures = [("Image tokens", "image_tokens"), ("Prompt tokens", "prompt_tokens")]
    measures += [("KV bytes at their longest, added up", "kv_bytes"), ("Requests refused", "refused")]
    measures += [("Cost of prompts", "cost")] if is_priced else []
    panels = [
        _pair(title, names, [(_figure(row["before"][key]), _figure(row["after"][key])) for row in shown])
        for title, key in measures
    ]
    return draw("Replayed under other policies", panels)


def _figure(value: float | dict[str, int]) -> float:
    return sum(value.values()) if isinstance(value, dict) else value


def _pair(title: str, names: Sequence[str], values: Sequence[tuple[float, float]]) -> Panel:
    series = (Series("before", [each[0] for each in values]), Series("after", [each[1] for each in values]))
    return Panel(title, "tenant and task", series, names)


def shadow_report(found: Sequence[Shadowed], read: Read) -> dict[str, object]:
    """What shadow mode found, by tenant and task."""
    return {"read": read.to_json(), "rows": [each.to_json() for each in found]}


def show_shadow(found: Sequence[Shadowed], read: Read) -> None:
    """The same as tables."""
    rows = [
        (
            each.tenant,
            each.task,
            f"{each.requests:,}",
            f"{each.refused:,}",
            f"{each.changed:,}",
            f"{each.tokens_original:,}",
            f"{each.tokens_left:,}",
            _change(each.tokens_original, each.tokens_left),
        )
        for each in found
    ]
    columns = ("tenant", "task", "requests", "refused", "changed", "image tokens", "left", "")
    if rows:
        show_table("What shadow mode would have done", columns, rows)
    rules = [
        (each.tenant, each.task, finding, f"{count:,} refused", ", ".join(each.examples.get(finding, ())))
        for each in found
        for finding, count in each.findings.most_common()
    ]
    rules += [
        (each.tenant, each.task, rule, f"{count:,} images", "")
        for each in found
        for rule, count in each.changes.most_common()
    ]
    if rules:
        show_table("By rule", ("tenant", "task", "rule", "would have been", "such as"), rules)
    requests = sum(each.requests for each in found)
    refused, changed = sum(each.refused for each in found), sum(each.changed for each in found)
    say(
        f"{requests:,} of {read.exchanges:,} exchanges in shadow mode: {refused:,} would have been refused, "
        f"{changed:,} changed; {read.bad_lines:,} bad line(s)."
    )


def _sum(tallies: Sequence[Tally], name: str, *, before: bool) -> int:
    return sum(int(getattr(tally.before if before else tally.after, name)) for tally in tallies)


def _refusals(tallies: Sequence[Tally], *, before: bool) -> int:
    return sum(_refused(tally.before if before else tally.after) for tally in tallies)


def _refused(side: Side) -> int:
    return side.refused.total()


def _money(amount: float) -> str:
    return f"{round(amount, 2) + 0.0:,.2f}"  # adding 0 makes a plain zero of a negative one


def _change(before: float, after: float) -> str:
    return f"{after / before - 1:+.0%}" if before and after != before else ""
