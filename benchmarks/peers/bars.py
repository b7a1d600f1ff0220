"""The peers' figure as SVG: CPU per request by kind of request, one bar for each contender, on a logarithmic axis.

Linear bars would show LiteLLM's and nothing else. Colours and look are those of ``gateway.cli.chart``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from benchmarks.peers.line_up import EVERYBODY, GATEWAY
from benchmarks.peers.speed import CELLS

_SHOWN = ("text", "image_300kb", "image_5mb", "stream")
_COLOURS = dict(zip(EVERYBODY, ("#d55e00", "#8c959f", "#0072b2", "#009e73", "#56b4e9", "#cc79a7"), strict=True))
_INK, _MUTED, _RULE, _PAPER = "#1f2328", "#59636e", "#d1d9e0", "#ffffff"
_WIDTH, _LEFT, _RIGHT, _TOP = 860, 150, 70, 64
_BAR, _GAP = 15, 40
_LEAST_MS, _MOST_MS = 0.1, 1000.0


def chart(report: Mapping[str, Any]) -> str:
    """The whole document. The same report gives the same text."""
    cells = [cell for cell in CELLS if cell.name in _SHOWN and cell.name in report["costs"]]
    body: list[str] = []
    top = _TOP
    for cell in cells:
        body.append(_text(16, top + 2, cell.what, size=13, weight=600))
        costs = report["costs"][cell.name]
        for name in (name for name in EVERYBODY if name in costs):
            top += _BAR + 3
            body += _bar(name, costs[name]["cpu_ms"], top)
        top += _GAP
    height = top + 4
    marks = [_LEAST_MS * 10**power for power in range(round(math.log10(_MOST_MS / _LEAST_MS)) + 1)]
    grid = [f'<path d="M{_across(mark):.1f} {_TOP - 12}V{top - 20}" stroke="{_RULE}"/>' for mark in marks]
    names = [_text(_across(mark), top - 6, f"{mark:g}", anchor="middle", colour=_MUTED) for mark in marks]
    title = "CPU-ms of a request by who relays it (logarithmic; less is better)"
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    opening = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="system-ui, sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{_PAPER}"/>',
        _text(16, 28, title, size=16, weight=600),
    ]
    return "\n".join([*opening, *grid, *body, *names, "</svg>", ""])


def _bar(name: str, cpu_ms: float, top: float) -> list[str]:
    end = _across(min(max(cpu_ms, _LEAST_MS), _MOST_MS))
    weight = 600 if name == GATEWAY else 400
    return [
        _text(_LEFT - 8, top + 5, name, anchor="end", weight=weight),
        f'<rect x="{_LEFT}" y="{top - 7}" width="{max(end - _LEFT, 1):.1f}" height="{_BAR}" fill="{_COLOURS[name]}"/>',
        _text(end + 6, top + 5, f"{cpu_ms:.3g}", weight=weight),
    ]


def _across(cpu_ms: float) -> float:
    share = math.log10(cpu_ms / _LEAST_MS) / math.log10(_MOST_MS / _LEAST_MS)
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _text(
    x: float, y: float, text: str, *, size: int = 12, weight: int = 400, anchor: str = "start", colour: str = _INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{colour}">{escape(text)}</text>'
    )
