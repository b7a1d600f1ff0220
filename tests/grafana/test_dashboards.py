"""What is committed is what the program says, and Grafana would read all of it.

No Grafana runs here, so what it reads is written down: the keys of each panel type, after its own ``@grafana/schema``,
which has open records where the usual mistakes are made (an option of fields among those of a panel is ignored).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from grafana.builder import COLUMNS
from grafana.dashboards import ANNOTATIONS, DASHBOARDS, FOLDER, text_of
from tests.grafana.expressions import VARIABLES
from tests.grafana.known import ROOT

BOARDS: dict[str, Any] = {name: json.loads(text_of(board)) for name, board in DASHBOARDS.items()}
PANELS: dict[str, Any] = {
    f"{name}: {panel['title']}": panel
    for name, board in BOARDS.items()
    for panel in board["panels"]
    if panel["type"] != "row"
}
DASHBOARD_KEYS = {
    "uid", "title", "description", "tags", "schemaVersion", "editable", "graphTooltip", "refresh", "timezone", "time",
    "links", "templating", "annotations", "panels",
}  # fmt: skip
PANEL_KEYS = {"id", "type", "title", "description", "datasource", "gridPos", "targets", "fieldConfig", "options"}
OPTIONAL_KEYS = {"transformations", "links"}
DEFAULTS = {"unit", "min", "max", "thresholds", "custom", "color"}
# Type -> keys of `options`, keys of `fieldConfig.defaults.custom`.
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "timeseries": (
        {"legend", "tooltip"},
        {"drawStyle", "lineInterpolation", "lineWidth", "fillOpacity", "showPoints", "spanNulls", "stacking",
         "axisPlacement", "thresholdsStyle"},
    ),
    "stat": ({"reduceOptions", "colorMode", "graphMode", "justifyMode", "orientation", "textMode"}, set()),
    "table": ({"showHeader", "cellHeight"}, {"align", "cellOptions", "filterable"}),
}  # fmt: skip
# Of Grafana's list (packages/grafana-data/src/valueFormats/categories.ts).
UNITS = {"none", "s", "bytes", "Bps", "reqps", "ops", "cps", "percentunit"}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_what_is_committed_is_what_the_program_writes(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == text_of(DASHBOARDS[name])


def test_no_other_dashboard_lies_about() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(DASHBOARDS)
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_has_only_keys_that_its_type_reads(name: str) -> None:
    panel = PANELS[name]
    options, custom = ALLOWED[panel["type"]]
    assert set(panel) >= PANEL_KEYS
    assert set(panel) <= PANEL_KEYS | OPTIONAL_KEYS
    assert set(panel["options"]) == options
    assert set(panel["fieldConfig"]) == {"defaults", "overrides"}
    assert set(panel["fieldConfig"]["defaults"]) <= DEFAULTS
    assert set(panel["fieldConfig"]["defaults"]["custom"]) == custom


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_asks_a_question_has_a_unit_and_says_what_to_do(name: str) -> None:
    panel = PANELS[name]
    assert panel["title"].endswith("?")
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["targets"]
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_has_only_known_keys_and_nothing_is_null_but_the_first_threshold(name: str) -> None:
    board = BOARDS[name]
    assert set(board) == DASHBOARD_KEYS
    assert _nulls(board) <= {"panels.fieldConfig.defaults.thresholds.steps.value"}


def _nulls(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {found for key, each in value.items() for found in _nulls(each, f"{path}.{key}".lstrip("."))}
    if isinstance(value, list):
        return {found for each in value for found in _nulls(each, path)}
    return {path} if value is None else set()


@pytest.mark.parametrize("name", BOARDS)
def test_panels_fill_the_grid_without_overlap_and_ids_are_unique(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    panels = BOARDS[name]["panels"]
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= COLUMNS
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("name", BOARDS)
def test_every_source_is_the_chosen_one_and_every_variable_is_used(name: str) -> None:
    board = BOARDS[name]
    sources = [
        part["datasource"]
        for part in (*board["annotations"]["list"], *(panel for panel in board["panels"] if panel["type"] != "row"))
    ]
    sources += [target["datasource"] for panel in board["panels"] for target in panel.get("targets", ())]
    sources += [each["datasource"] for each in board["templating"]["list"] if each["type"] == "query"]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    names = {each["name"] for each in board["templating"]["list"]}
    text = json.dumps([board["panels"], board["annotations"]])
    assert {each for each in names if f"${each}" not in text and f"${{{each}}}" not in text} == set()
    used = {each for each in VARIABLES if f"${each}" in text}
    assert used - {"__rate_interval"} <= names


def test_runbook_links_lead_to_sections() -> None:
    anchors = {
        line.removeprefix("## ").strip().lower()
        for line in (ROOT / "docs/runbook.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    }
    linked = {link["url"].split("#")[1] for panel in PANELS.values() for link in panel.get("links", ())}
    assert linked
    assert linked <= anchors


def test_what_is_annotated_has_a_name_and_a_colour() -> None:
    assert len({name for name, _, _ in ANNOTATIONS}) == len(ANNOTATIONS) == 3


def test_provisioning_names_a_source_and_a_folder() -> None:
    folder = ROOT / "grafana" / "provisioning"
    source = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text())["datasources"][0]
    assert (source["type"], source["isDefault"], source["uid"]) == ("prometheus", True, "vlmgw-prometheus")
    provider = yaml.safe_load((folder / "dashboards" / "vlm-gateway.yaml").read_text())["providers"][0]
    assert (provider["type"], provider["options"]["path"]) == ("file", "/etc/grafana/dashboards")
