"""The previews: numbers in their unit, legends, and a picture of every panel whatever was answered."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest

from grafana.builder import Dashboard, Kind, Panel, Query, Row
from grafana.dashboards import DASHBOARDS
from grafana.preview import Answers, Drawn, legend, preview, said


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0123, "s", "12.3 ms"),
        (75, "s", "75 s"),
        (0, "s", "0"),
        (0.5, "percentunit", "50%"),
        (3 * 2**20, "bytes", "3 MiB"),
        (1500, "Bps", "1.5k B/s"),
        (0.25, "reqps", "0.25 req/s"),
        (12, "none", "12"),
        (math.nan, "s", "–"),
    ],
)
def test_numbers_are_written_in_their_unit(value: float, unit: str, text: str) -> None:
    assert said(value, unit) == text


def test_a_legend_takes_its_labels() -> None:
    assert legend("{{backend}} {{result}}", {"backend": "a", "result": "ok"}) == "a ok"
    assert legend("{{missing}}", {}) == ""


def board(kind: Kind, *, stacked: bool = False, share: bool = False) -> Dashboard:
    panel = Panel(title="What?", action="None.", unit="none", queries=(Query("x", "{{a}}"),), kind=kind,
                  stacked=stacked, share=share)  # fmt: skip
    return Dashboard("u", "A <title>", "About.", (Row("Row", (panel,)),))


MANY: Answers = [[Drawn({"a": f"series-{n}"}, [(1.0, n), (2.0, math.nan), (3.0, n + 1.0)]) for n in range(12)]]
ANSWERS: list[Answers] = [[], [[]], [[Drawn({}, [(5.0, 0.0)])]], [[Drawn({"a": "<&>"}, [(1.0, math.nan)])]], MANY]


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("answers", ANSWERS, ids=["none", "empty", "one point", "no number", "many with gaps"])
def test_whatever_is_answered_the_picture_is_well_formed_and_says_what_it_is(kind: Kind, answers: Answers) -> None:
    for stacked in (False, True):
        drawn = ET.fromstring(preview(board(kind, stacked=stacked), {1: answers}))
        texts = [element.text or "" for element in drawn.iter() if element.tag.endswith("text")]
        assert "What?" in texts
        assert any("not Grafana" in text for text in texts)
        assert "nan" not in ET.tostring(drawn, encoding="unicode").lower()


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_panel_is_drawn(name: str) -> None:
    drawn = ET.fromstring(preview(DASHBOARDS[name], {}))
    texts = {element.text for element in drawn.iter() if element.tag.endswith("text")}
    assert {panel.title for panel in DASHBOARDS[name].panels()} <= texts
