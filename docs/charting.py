"""What the Helm chart and the kustomize components get from elsewhere: schema, table of values, rules.

Decided here: how a comment of ``values.yaml`` becomes a row and a schema, and how settings become a schema. Not decided
here: which values there are (``docker/helm/vlm-gateway/values.yaml``), which settings (``gateway.config``), which
alerts (``grafana/rules``).
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gateway.config.settings import Settings

ROOT = Path(__file__).parents[1]
CHART = ROOT / "docker" / "helm" / "vlm-gateway"
VALUES = CHART / "values.yaml"
README = CHART / "README.md"
_START, _END = "<!-- values: python -m docs.generate -->", "<!-- end of values -->"
_RULES = ROOT / "grafana" / "rules"
_DRAFT = "http://json-schema.org/draft-07/schema#"  # what every Helm reads
# The chart sets these itself: ports and probes depend on them.
_CHART_SETS = {"": ("policies",), "server": ("host", "port", "admin_host", "admin_port", "processes", "tcp")}
_FILE_NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"


@dataclass(frozen=True, slots=True)
class Value:
    """One line of values.yaml: dotted path, what it is by default, what is said of it and asked of it."""

    path: str
    default: Any
    help: str
    rules: dict[str, Any]
    inner: tuple[Value, ...] = ()


def values() -> tuple[Value, ...]:
    """All values, sections with what is in them. Raises ValueError for one of which nothing is said."""
    text = VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    return tuple(_read(root, yaml.safe_load(text), text.splitlines(), ""))


def _read(node: yaml.MappingNode, raw: dict[str, Any], lines: list[str], prefix: str) -> Iterator[Value]:
    for key, inner in node.value:
        path = prefix + key.value
        said, rules = _comment_above(lines, key.start_mark.line)
        default = raw[key.value]
        if isinstance(inner, yaml.MappingNode) and inner.value and not rules:
            yield Value(path, default, said, rules, tuple(_read(inner, default, lines, f"{path}.")))
            continue
        if not said:
            raise ValueError(f"values.yaml: {path}: nothing is said of it")
        yield Value(path, default, said, rules)


def _comment_above(lines: list[str], line: int) -> tuple[str, dict[str, Any]]:
    said: list[str] = []
    rules: dict[str, Any] = {}
    while line and (found := re.match(r"\s*# ?(.*)", lines[line - 1])):
        line -= 1
        if found[1].startswith("@schema "):
            rules = json.loads(found[1].removeprefix("@schema "))
        else:
            said.insert(0, found[1].strip())
    return " ".join(said), rules


def values_schema() -> str:
    """values.schema.json."""
    schema = {"$schema": _DRAFT, "title": "Values of the chart vlm-gateway"} | _section(values())
    schema["properties"]["global"] = {"type": "object", "description": "Helm's own, for charts that include this one."}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _section(entries: tuple[Value, ...]) -> dict[str, Any]:
    properties = {each.path.rpartition(".")[2]: _schema(each) for each in entries}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _schema(value: Value) -> dict[str, Any]:
    if value.inner:
        return _section(value.inner)
    rules = dict(value.rules)
    if rules.pop("settings", False):
        return {"description": value.help} | settings_schema(Settings, "")
    if rules.pop("policies", False):
        named = {_FILE_NAME: {"type": ["object", "string"], "minProperties": 1, "minLength": 1}}
        rules = {"patternProperties": named, "additionalProperties": False}
    kinds: dict[type[Any], str] = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        dict: "object",
        list: "array",
    }
    return {"description": value.help, "type": kinds[type(value.default)]} | rules


def settings_schema(cls: type[Any], path: str) -> dict[str, Any]:
    """What ``gateway.config`` takes, but for what the chart sets: names, types, choices, bounds of plain numbers."""
    hints = typing.get_type_hints(cls)
    properties = {
        each.name: _setting(hints[each.name], each, f"{path}.{each.name}".strip("."))
        for each in dataclasses.fields(cls)
        if each.name not in _CHART_SETS.get(path, ())
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _setting(hint: Any, field: dataclasses.Field[Any], path: str) -> dict[str, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        made = _setting(next(entry for entry in inner if entry is not type(None)), field, path)
        return {"anyOf": [made, {"type": "null"}]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return settings_schema(hint, path)
    if origin is tuple:
        entry = _setting(inner[0], field, f"{path}.*")
        # a list of engines may name them by their addresses; text with commas is a list of text
        named = {"anyOf": [{"type": "string"}, entry]} if dataclasses.is_dataclass(inner[0]) else entry
        return {"type": ["array", "string"] if inner[0] is str else "array", "items": named}
    if origin is dict:
        return {"type": "object"} if inner[1] is object else _mapping(inner[1], field, path)
    return _plain(hint, field, path)


def _mapping(item: Any, field: dataclasses.Field[Any], path: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": _setting(item, field, f"{path}.*")}


def _plain(hint: Any, field: dataclasses.Field[Any], path: str) -> dict[str, Any]:
    known = field.metadata
    if known.get("choices"):
        return {"enum": list(known["choices"])}
    if hint in (str, bool):
        return {"type": "string" if hint is str else "boolean"}
    bounds = {name: known[name] for name in ("minimum", "maximum") if known.get(name) is not None}
    number = {"type": "integer" if hint is int else "number"} | bounds
    # The chart reckons with these two; of all others it takes what the gateway takes, such as 64MiB and 1280x32x32.
    if path in ("server.settle_s", "server.drain_timeout_s") or known.get("unit") not in ("bytes", "pixels", "s"):
        return number
    return {"anyOf": [number, {"type": "string", "pattern": "^[0-9]"}]}


def chart_readme() -> str:
    """The chart's README with today's table of values between its two marks. Raises ValueError without them."""
    text = README.read_text(encoding="utf-8")
    before, start, rest = text.partition(_START)
    _, end, after = rest.partition(_END)
    if not start or not end:
        raise ValueError(f"{README.name}: has no {_START} ... {_END}")
    rows = [f"| `{each.path}` | {_shown(each.default)} | {_told(each)} |" for each in _leaves(values())]
    table = ["| value | default | meaning |", "| --- | --- | --- |", *rows]
    return "\n".join([before + start, "", *table, "", end + after])


def _leaves(entries: tuple[Value, ...]) -> Iterator[Value]:
    for each in entries:
        if each.inner:
            yield from _leaves(each.inner)
        else:
            yield each


def _shown(default: Any) -> str:
    written = json.dumps(default, ensure_ascii=False) if not isinstance(default, str) else default
    if default in ("", [], {}):
        return "none"
    return "below" if isinstance(default, dict | list) and len(written) > 40 else f"`{written}`"


def _told(value: Value) -> str:
    choices = ", ".join(f"`{each}`" for each in value.rules.get("enum", ()))
    return (value.help + (f" One of {choices}." if choices else "")).replace("|", "\\|")


def prometheus_rule() -> str:
    """grafana/rules as an object of the Prometheus operator, comments and all."""
    head = (
        "# Generated from grafana/rules by `python -m docs.generate`. Edit those.",
        "apiVersion: monitoring.coreos.com/v1",
        "kind: PrometheusRule",
        "metadata:",
        "  name: vlm-gateway",
        "  labels:",
        "    app.kubernetes.io/name: vlm-gateway",
        "    app.kubernetes.io/instance: vlm-gateway",
        "spec:",
        "  groups:",
    )
    lines = list(head)
    for name in ("recording.yaml", "alerts.yaml"):
        text = (_RULES / name).read_text(encoding="utf-8")
        _, _, groups = text.partition("groups:\n")
        lines += [f"  {line}".rstrip() for line in groups.splitlines()]
    return "\n".join(lines) + "\n"


PAGES = {
    "../docker/helm/vlm-gateway/values.schema.json": values_schema,
    "../docker/helm/vlm-gateway/README.md": chart_readme,
    "../docker/kubernetes/components/monitoring/prometheusrule.yaml": prometheus_rule,
}
