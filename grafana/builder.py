"""Dashboards as values, and their JSON in Grafana's classic model.

Decided here: the few panel types there are, their layout on 24 columns, the keys that Grafana reads (schema 39, that of
Grafana 11; later ones migrate it). Not decided here: what is on a dashboard (the modules beside), what a query says
(``promql``). Why no SDK: docs/adr/0014-dashboards-by-a-builder-of-our-own.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

JsonValue = Mapping[str, "JsonValue"] | Sequence["JsonValue"] | str | int | float | bool | None
Json = dict[str, JsonValue]

SCHEMA_VERSION = 39
COLUMNS = 24
TAG = "vlm-gateway"
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


class Kind(StrEnum):
    TIMESERIES = "timeseries"
    STAT = "stat"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Query:
    """One expression. ``legend`` names each series by its labels (``{{backend}}``); in a table it names the column."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """``title`` is the question, ``action`` what to do about the answer, ``runbook`` the anchor of a page about it.

    ``share``: values lie within 0 and 1. ``quiet``: why it may be without any series where all is well, or where a
    feature is off; what is nothing is drawn as no data.
    """

    title: str
    action: str
    unit: str
    queries: tuple[Query, ...]
    kind: Kind = Kind.TIMESERIES
    width: int = 8
    height: int = 8
    stacked: bool = False
    share: bool = False
    quiet: str | None = None
    runbook: str | None = None
    limit: float | None = None
    colours: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """``variables``: further ones, as (name, query for its values)."""

    uid: str
    title: str
    about: str
    rows: tuple[Row, ...]
    variables: tuple[tuple[str, str], ...] = ()

    def panels(self) -> Iterator[Panel]:
        """In the order of their ids."""
        for row in self.rows:
            yield from row.panels


def _query(query: Query, nth: int, kind: Kind) -> Json:
    return {
        "refId": chr(ord("A") + nth),
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": query.expr,
        "legendFormat": query.legend,
        "format": "table" if kind is Kind.TABLE else "time_series",
        "instant": kind is Kind.TABLE,
        "range": kind is not Kind.TABLE,
    }


def _thresholds(panel: Panel) -> Json:
    steps: list[Json] = [{"color": "green", "value": None}]
    if panel.limit is not None:
        steps.append({"color": "red", "value": panel.limit})
    return {"mode": "absolute", "steps": steps}


def _custom(panel: Panel) -> Json:
    if panel.kind is Kind.TABLE:
        return {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True}
    if panel.kind is Kind.STAT:
        return {}
    return {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 30 if panel.stacked else 8,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if panel.stacked else "none"},
        "axisPlacement": "auto",
        "thresholdsStyle": {"mode": "off" if panel.limit is None else "dashed"},
    }


def _fields(panel: Panel) -> Json:
    defaults: Json = {"unit": panel.unit, "min": 0, "thresholds": _thresholds(panel), "custom": _custom(panel)}
    if panel.share:
        defaults["max"] = 1
    defaults["color"] = {"mode": "palette-classic" if panel.kind is Kind.TIMESERIES else "thresholds"}
    overrides: list[Json] = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for name, colour in (panel.colours or {}).items()
    ]
    return {"defaults": defaults, "overrides": overrides}


def _options(panel: Panel) -> Json:
    if panel.kind is Kind.TABLE:
        return {"showHeader": True, "cellHeight": "sm"}
    if panel.kind is Kind.STAT:
        return {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
        }
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _link(title: str, kind: str, url: str = "") -> Json:
    return {
        "title": title,
        "type": kind,
        "url": url,
        "icon": "doc" if kind == "link" else "external link",
        "tooltip": "",
        "tags": [] if kind == "link" else [TAG],
        "asDropdown": False,
        "includeVars": kind == "dashboards",
        "keepTime": kind == "dashboards",
        "targetBlank": kind == "link",
    }


def _panel(panel: Panel, number: int, x: int, y: int) -> Json:
    made: Json = {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.action,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "targets": [_query(query, nth, panel.kind) for nth, query in enumerate(panel.queries)],
        "fieldConfig": _fields(panel),
        "options": _options(panel),
    }
    if panel.kind is Kind.TABLE:
        names: Json = {f"Value #{chr(ord('A') + nth)}": query.legend for nth, query in enumerate(panel.queries)}
        made["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
        ]
    if panel.runbook is not None:
        made["links"] = [_link("What to do", "link", f"${{runbook}}#{panel.runbook}")]
    return made


Place = tuple[int, int, int, int]


def grid(dashboard: Dashboard) -> Iterator[tuple[int, Panel | str, Place]]:
    """Ids, panels or titles of rows, and their places (x, y, width, height): left to right, rows above their panels."""
    number, y = 0, 0
    for nth, row in enumerate(dashboard.rows):
        yield 1000 + nth, row.title, (0, y, COLUMNS, 1)
        x, y, tallest = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            number += 1
            yield number, panel, (x, y, panel.width, panel.height)
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest


def _laid_out(dashboard: Dashboard) -> Iterator[Json]:
    for number, what, (x, y, width, height) in grid(dashboard):
        if isinstance(what, Panel):
            yield _panel(what, number, x, y)
            continue
        yield {
            "id": number,
            "type": "row",
            "title": what,
            "collapsed": False,
            "gridPos": {"x": x, "y": y, "w": width, "h": height},
            "panels": [],
        }


def _variable(name: str, query: str) -> Json:
    return {
        "type": "query",
        "name": name,
        "label": name,
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _variables(dashboard: Dashboard) -> list[Json]:
    return [
        {"type": "datasource", "name": "datasource", "label": "data source", "query": "prometheus"},
        _variable("job", "label_values(vlmgw_build_info, job)"),
        _variable("instance", 'label_values(vlmgw_build_info{job=~"$job"}, instance)'),
        *(_variable(name, query) for name, query in dashboard.variables),
        {
            "type": "textbox",
            "name": "runbook",
            "label": "runbook",
            "query": "docs/runbook.md",
            "current": {"text": "docs/runbook.md", "value": "docs/runbook.md"},
            "hide": 2,
        },
    ]


def _annotation(name: str, expr: str, colour: str) -> Json:
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "iconColor": colour,
        # Where Grafana 10 and 11 look; later ones take the target.
        "expr": expr,
        "titleFormat": name,
        "step": "30s",
        "target": {"refId": "Anno", "expr": expr, "interval": "30s"},
    }


def dashboard_json(dashboard: Dashboard, annotations: Sequence[tuple[str, str, str]]) -> Json:
    """What Grafana loads. ``annotations``: (name, expression that is there while something happens, colour)."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "links": [_link("vlm-gateway", "dashboards")],
        "templating": {"list": _variables(dashboard)},
        "annotations": {"list": [_annotation(*each) for each in annotations]},
        "panels": list(_laid_out(dashboard)),
    }
