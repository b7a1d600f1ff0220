"""A dashboard drawn as SVG from the same answers that its checks saw: a preview, not Grafana.

Decided here: a panel's frame, its lines, numbers and tables, and how numbers are written in their unit. It exists so
that a person can look at a dashboard where no Grafana runs. Not decided here: what the answers are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from grafana.builder import COLUMNS, Dashboard, Kind, Panel, grid

CELL_W, CELL_H, GAP = 60, 34, 6
TITLE_H = 64
_BACK, _PANEL, _EDGE, _TEXT, _DIM, _GREEN, _RED = (
    "#111217", "#181b1f", "#2c3235", "#d8d9da", "#8e9196", "#73bf69", "#f2495c",
)  # fmt: skip
_PALETTE = (
    "#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a",
    "#447ebc", "#c15c17",
)  # fmt: skip
_NAMED = {
    "green": "#73bf69", "yellow": "#fade2a", "orange": "#ff9830", "red": "#f2495c", "dark-yellow": "#e0b400",
    "blue": "#5794f2", "purple": "#b877d9",
}  # fmt: skip
_LEGEND_LIMIT = 8


@dataclass(frozen=True, slots=True)
class Drawn:
    """One series: its labels, and (second, value) pairs."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]


Answers = Sequence[Sequence[Drawn]]


def said(value: float, unit: str) -> str:
    """A number as its panel's unit writes it."""
    if not math.isfinite(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.3g}%"
    if unit == "s":
        return _scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")))
    steps = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
    if unit == "bytes":
        return _scaled(value, ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1.0, "B")))
    rates = {"Bps": "B/s", "reqps": "req/s", "ops": "/s", "cps": "/s"}
    return f"{_scaled(value, steps)}{(' ' if unit != 'none' else '') + rates.get(unit, '')}"


def _scaled(value: float, steps: Sequence[tuple[float, str]]) -> str:
    for size, name in steps:
        if abs(value) >= size:
            return f"{value / size:.3g}{' ' if len(name) > 1 or name == 's' else ''}{name}"
    size, name = steps[-1]
    return f"{value / size:.3g}{' ' if len(name) > 1 or name == 's' else ''}{name}" if value else "0"


def legend(pattern: str, labels: Mapping[str, str]) -> str:
    """``{{label}}`` replaced by the series' own."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), pattern)


def preview(dashboard: Dashboard, answers: Mapping[int, Answers]) -> str:
    """The SVG. ``answers``: by panel id, one list of series for each of its queries."""
    laid = list(grid(dashboard))
    height = TITLE_H + CELL_H * max(y + h for _, _, (_, y, _, h) in laid) + GAP
    width = COLUMNS * CELL_W
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="DejaVu Sans">',
        f'<rect width="{width}" height="{height}" fill="{_BACK}"/>',
        _text(14, 30, dashboard.title, 20),
        _text(14, 52, f"{dashboard.about} Preview, not Grafana: drawn from a test's own traffic.", 12, _DIM),
    ]
    for number, what, (x, y, w, h) in laid:
        left, top = x * CELL_W + GAP / 2, TITLE_H + y * CELL_H + GAP / 2
        if isinstance(what, str):
            parts.append(_text(left + 8, top + 21, f"▾ {what}", 15))
            continue
        box = (left, top, w * CELL_W - GAP, h * CELL_H - GAP)
        parts.append(_frame(what, box))
        parts.extend(_BODIES[what.kind](what, answers.get(number, ()), box))
    return "\n".join([*parts, "</svg>"]) + "\n"


_Box = tuple[float, float, float, float]


def _text(x: float, y: float, text: str, size: float, fill: str = _TEXT, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _frame(panel: Panel, box: _Box) -> str:
    x, y, w, h = box
    size = min(13.0, 1.62 * (w - 16) / max(1, len(panel.title)))
    frame = f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="2" fill="{_PANEL}" stroke="{_EDGE}"/>'
    return frame + _text(x + 10, y + 20, panel.title, round(size, 1))


def _named(panel: Panel, answers: Answers) -> list[tuple[str, str, Drawn]]:
    """Every series with its legend and colour."""
    found: list[tuple[str, str, Drawn]] = []
    for query, series in zip(panel.queries, answers, strict=False):
        for each in sorted(series, key=lambda drawn: sorted(drawn.labels.items())):
            name = legend(query.legend, each.labels)
            fixed = (panel.colours or {}).get(name)
            found.append((name, _NAMED[fixed] if fixed else _PALETTE[len(found) % len(_PALETTE)], each))
    return found


def _stat(panel: Panel, answers: Answers, box: _Box) -> Iterator[str]:
    x, y, w, h = box
    series = _named(panel, answers)
    if not series:
        yield _text(x + w / 2, y + h / 2 + 10, "No data", 16, _DIM, "middle")
    for nth, (name, _, drawn) in enumerate(series):
        value = next((value for _, value in reversed(drawn.points) if math.isfinite(value)), math.nan)
        middle = x + w * (nth + 0.5) / len(series)
        colour = _RED if panel.limit is not None and value >= panel.limit else _GREEN
        yield _text(middle, y + h / 2 + 18, said(value, panel.unit), 30 if len(series) < 3 else 20, colour, "middle")
        yield _text(middle, y + h - 14, name, 11, _DIM, "middle")


def _table(panel: Panel, answers: Answers, box: _Box) -> Iterator[str]:
    x, y, w, _ = box
    rows: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for query, series in zip(panel.queries, answers, strict=False):
        for drawn in series:
            rows.setdefault(tuple(sorted(drawn.labels.items())), {})[query.legend] = drawn.points[-1][1]
    labels = sorted({name for row in rows for name, _ in row})
    heads = [*labels, *(query.legend for query in panel.queries)]
    step = (w - 20) / max(1, len(heads))
    for nth, head in enumerate(heads):
        yield _text(x + 10 + nth * step, y + 46, head, 12, "#6e9fff")
    for line, (row, values) in enumerate(sorted(rows.items())):
        cells = [dict(row).get(name, "") for name in labels]
        cells += [said(values[query.legend], panel.unit) if query.legend in values else "–" for query in panel.queries]
        for nth, cell in enumerate(cells):
            yield _text(x + 10 + nth * step, y + 70 + line * 22, cell, 12)


def _graph(panel: Panel, answers: Answers, box: _Box) -> Iterator[str]:
    x, y, w, h = box
    series = [entry for entry in _named(panel, answers) if any(math.isfinite(value) for _, value in entry[2].points)]
    if not series:
        yield _text(x + w / 2, y + h / 2 + 6, "No data", 15, _DIM, "middle")
        return
    lines = _stacked(series) if panel.stacked else [list(drawn.points) for _, _, drawn in series]
    seconds = [second for line in lines for second, _ in line]
    first, last = min(seconds), max(*seconds, min(seconds) + 1)
    highest = max(v for line in lines for _, v in line if math.isfinite(v))
    top = 1.0 if panel.share else _round_up(highest, 2.0 if panel.unit == "bytes" else 10.0)
    rows = min(-(-len(series) // 2), _LEGEND_LIMIT // 2)
    left, right, upper, lower = x + 62, x + w - 10, y + 34, y + h - 18 - 15 * rows
    for tick in range(5):
        at = lower - (lower - upper) * tick / 4
        yield f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="{_EDGE}"/>'
        yield _text(left - 6, at + 4, said(top * tick / 4, panel.unit), 10, _DIM, "end")
    for (_, colour, _), line in reversed(list(zip(series, lines, strict=True))):
        for piece in _pieces(line):
            across, down = (right - left) / (last - first), (lower - upper) / top
            places = [f"{left + across * (s - first):.1f},{lower - down * min(v, top):.1f}" for s, v in piece]
            if panel.stacked:
                base = [f"{places[-1].split(',')[0]},{lower:.1f}", f"{places[0].split(',')[0]},{lower:.1f}"]
                yield f'<polygon points="{" ".join([*places, *base])}" fill="{_blend(colour)}"/>'
            yield f'<polyline points="{" ".join(places)}" fill="none" stroke="{colour}" stroke-width="1.4"/>'
    yield from _legend(series, (x + 10, lower + 22, w - 20, 0))


def _blend(colour: str) -> str:
    """A third of the colour over the panel's own, opaque: what lies behind a stack is the next of it, not the sum."""
    pairs = zip(_rgb(colour), _rgb(_PANEL), strict=True)
    return "#" + "".join(f"{round(0.35 * front + 0.65 * back):02x}" for front, back in pairs)


def _rgb(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def _legend(series: Sequence[tuple[str, str, Drawn]], box: _Box) -> Iterator[str]:
    x, y, w, _ = box
    shown = series[:_LEGEND_LIMIT]
    for nth, (name, colour, _) in enumerate(shown):
        more = nth == _LEGEND_LIMIT - 1 and len(series) > _LEGEND_LIMIT
        text = f"and {len(series) - nth} more" if more else name
        at, line = x + w / 2 * (nth % 2), y + 15 * (nth // 2)
        room = int(w / 2 / 6.4) - 3
        yield f'<rect x="{at:.1f}" y="{line - 5:.1f}" width="10" height="3" fill="{colour}"/>'
        yield _text(at + 15, line, text if len(text) <= room else f"{text[: room - 1]}…", 10.5, _DIM)


def _stacked(series: Sequence[tuple[str, str, Drawn]]) -> list[list[tuple[float, float]]]:
    heights: dict[float, float] = {}
    lines = []
    seconds = sorted({second for _, _, drawn in series for second, _ in drawn.points})
    for _, _, drawn in series:
        values = dict(drawn.points)
        line = []
        for second in seconds:
            value = values.get(second, 0.0)
            heights[second] = heights.get(second, 0.0) + (value if math.isfinite(value) else 0.0)
            line.append((second, heights[second]))
        lines.append(line)
    return lines


def _pieces(line: Sequence[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    """Runs of finite values; gaps stay gaps."""
    piece: list[tuple[float, float]] = []
    for point in line:
        if math.isfinite(point[1]):
            piece.append(point)
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _round_up(value: float, base: float) -> float:
    """The next number that divides well into four: of few digits, or a few times a power of two."""
    if value <= 0:
        return 1.0
    size = base ** math.floor(math.log(value, base))
    steps = (1, 1.25, 1.5, 2) if base == 2.0 else (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 20)
    return next(step * size for step in steps if step * size >= value * 0.999)


_BODIES = {Kind.STAT: _stat, Kind.TABLE: _table, Kind.TIMESERIES: _graph}
