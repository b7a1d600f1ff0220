"""Charts as SVG text: lines over a run of numbers, and bars by name. No library: the drawing ones all bring Pillow.

Decided here: layout, colours, ticks. The same data gives the same text, so a chart can be committed and compared. Not
decided here: what is shown (the commands that draw).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Okabe and Ito's colours, told apart by people who see fewer of them too.
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_INK, _MUTED, _RULE, _PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
_WIDTH, _PLOT_HEIGHT = 860, 250
_LEFT, _RIGHT, _TOP, _BELOW = 84, 24, 58, 56
_TICKS = 5
_BAR_NAME_LETTERS = 24


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one bar in each group; ``values`` stand beside those of every other series."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart. With ``names`` it has bars, a group for each; without, lines over 1, 2, 3 ..."""

    title: str
    across: str
    series: Sequence[Series]
    names: Sequence[str] = ()


def draw(title: str, panels: Sequence[Panel]) -> str:
    """One SVG document: the panels below each other."""
    each = _TOP + _PLOT_HEIGHT + _BELOW
    height = 40 + each * len(panels)
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="system-ui, sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{_PAPER}"/>',
        _text(_LEFT, 28, title, size=16, weight=600),
    ]
    for index, panel in enumerate(panels):
        parts.append(f'<g transform="translate(0 {40 + index * each})">')
        parts += _panel(panel)
        parts.append("</g>")
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def ticks(highest: float) -> list[float]:
    """From 0 to at least ``highest`` in about five steps of 1, 2 or 5 times a power of ten."""
    if highest < 1e-9:
        return [0.0, 1.0]
    rough = highest / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * count for count in range(math.ceil(highest / step - 1e-9) + 1)]


def shortened(value: float) -> str:
    """A number for an axis: 1,200 as 1.2k."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


def _panel(panel: Panel) -> list[str]:
    marks = ticks(max((value for series in panel.series for value in series.values), default=0.0))
    parts = [_text(_LEFT, 16, panel.title, weight=600), *_legend(panel.series), *_grid(marks)]
    parts += _bars(panel, marks[-1]) if panel.names else _lines(panel, marks[-1])
    bottom = _TOP + _PLOT_HEIGHT
    parts.append(f'<path d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}" stroke="{_INK}"/>')
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 42, panel.across, anchor="middle", colour=_MUTED))
    return parts


def _legend(series: Sequence[Series]) -> list[str]:
    parts, left = [], float(_LEFT)
    for index, one in enumerate(series):
        parts.append(f'<rect x="{left:g}" y="29" width="12" height="12" rx="2" fill="{_colour(index)}"/>')
        parts.append(_text(left + 18, 39, one.name))
        left += 18 + 7 * len(one.name) + 22
    return parts


def _grid(marks: Sequence[float]) -> list[str]:
    parts = []
    for mark in marks:
        at = _height_of(mark, marks[-1])
        parts.append(f'<path d="M{_LEFT} {at:g}H{_WIDTH - _RIGHT}" stroke="{_RULE}"/>')
        parts.append(_text(_LEFT - 8, at + 4, shortened(mark), anchor="end", colour=_MUTED))
    return parts


def _lines(panel: Panel, top: float) -> list[str]:
    parts = []
    count = max((len(series.values) for series in panel.series), default=0)
    wide = (_WIDTH - _LEFT - _RIGHT) / max(1, count - 1)
    for mark in ticks(count)[1:]:
        if mark <= count:
            at = _LEFT + (mark - 1) * wide
            parts.append(_text(at, _TOP + _PLOT_HEIGHT + 18, shortened(mark), anchor="middle", colour=_MUTED))
    for index, series in enumerate(panel.series):
        points = " ".join(f"{_LEFT + x * wide:.1f},{_height_of(y, top):.1f}" for x, y in enumerate(series.values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{_colour(index)}" stroke-width="1.6"/>')
    return parts


def _bars(panel: Panel, top: float) -> list[str]:
    parts = []
    group = (_WIDTH - _LEFT - _RIGHT) / len(panel.names)
    wide = min(46.0, group * 0.8 / max(1, len(panel.series)))
    for place, name in enumerate(panel.names):
        middle = _LEFT + group * (place + 0.5)
        for index, series in enumerate(panel.series):
            at = _height_of(series.values[place], top)
            left = middle + (index - len(panel.series) / 2) * wide
            parts.append(
                f'<rect x="{left + 1:.1f}" y="{at:.1f}" width="{wide - 2:.1f}" '
                f'height="{_TOP + _PLOT_HEIGHT - at:.1f}" fill="{_colour(index)}"/>'
            )
            parts.append(
                _text(left + wide / 2, at - 5, shortened(series.values[place]), size=10, anchor="middle", colour=_MUTED)
            )
        told = name if len(name) <= _BAR_NAME_LETTERS else f"{name[: _BAR_NAME_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
        parts.append(_text(middle, _TOP + _PLOT_HEIGHT + 18, told, anchor="middle"))
    return parts


def _height_of(value: float, top: float) -> float:
    return _TOP + _PLOT_HEIGHT * (1 - value / top)


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def _text(
    x: float, y: float, text: str, *, size: int = 12, weight: int = 400, anchor: str = "start", colour: str = _INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{colour}">{escape(text)}</text>'
    )
