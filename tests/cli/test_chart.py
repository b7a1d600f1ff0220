"""Charts: well-formed, the same every time, every value in its place."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.chart import Panel, Series, draw, shortened, ticks

_SVG = "{http://www.w3.org/2000/svg}"


@given(st.floats(0, 1e12))
def test_ticks_reach_what_is_to_be_shown(highest: float) -> None:
    found = ticks(highest)
    assert found[0] == 0
    assert found[-1] >= highest * (1 - 1e-9)
    assert 2 <= len(found) <= 7


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (12.5, "12.5"), (1_200, "1.2k"), (3_000_000, "3M"), (2.5e9, "2.5G"), (-1e13, "-10T")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert shortened(value) == text


def test_lines_and_bars_are_drawn_and_names_are_escaped() -> None:
    lines = Panel("<lines>", "turn", [Series("a & b", [1, 2, 3]), Series("c", [3, 2, 1])])
    bars = Panel("bars", "tenant", [Series("before", [4, 0]), Series("after", [2, 0])], ["one", "x" * 40])
    text = draw("A title", [lines, bars])
    assert text == draw("A title", [lines, bars])
    root = ElementTree.fromstring(text)
    assert len(root.findall(f".//{_SVG}polyline")) == 2
    heights = [float(rect.get("height", "0")) for rect in root.findall(f".//{_SVG}rect")[5:]]
    heights = [height for height in heights if height != 12]
    assert heights == [250.0, 125.0, 0.0, 0.0]
    assert "x" * 23 + "…" in text
    assert "a &amp; b" in text


def test_nothing_to_show_is_an_empty_chart() -> None:
    ElementTree.fromstring(draw("Nothing", [Panel("none", "turn", [Series("a", [])])]))
