"""Helm, as a program of its own: its library is Go's runtime with signal handlers, which no test process should get.

Reads from standard input ``{"chart": folder, "renders": [{"values": YAML, "name": ..., "namespace": ...}, ...]}``;
writes one JSON list: for each either ``{"files": {template: text}, "lint": [message, ...]}`` or ``{"refused": why}``.
With ``"archive": folder`` it packages the chart there instead, and writes the archive's path.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import helm_python as helm

_WARNING = 2  # of Helm's severities 0 to 3; 1 tells that an icon is recommended


def rendered(chart: helm.Chart, folder: str, wanted: dict[str, str]) -> dict[str, Any]:
    """As ``helm install``: values against their schema, then templates; and what ``helm lint --strict`` says."""
    try:
        values = helm.values_from_yaml(wanted["values"])
        chart.validate_schema(chart.merge_values(values))
        files = chart.render(values, name=wanted["name"], namespace=wanted["namespace"])
    except helm.HelmError as error:
        return {"refused": str(error)}
    report = helm.lint(folder, values, strict=True, namespace=wanted["namespace"])
    told = [f"{each['path']}: {each['error']}" for each in report["messages"] if each["severity"] >= _WARNING]
    return {"files": files, "lint": [*told, *report["errors"]]}


def main() -> None:
    """Answer one request."""
    asked = json.load(sys.stdin)
    if "archive" in asked:
        json.dump(helm.package(asked["chart"], destination=asked["archive"]), sys.stdout)
        return
    chart = helm.Chart.load(asked["chart"])
    json.dump([rendered(chart, asked["chart"], wanted) for wanted in asked["renders"]], sys.stdout)


if __name__ == "__main__":
    main()
