"""Every alert says what it means, where to look and whom to wake; the runbook has a section for each and no other.

Whether it fires when it should and only then is tried with promtool in ``.ci/ops``.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from grafana.dashboards import DASHBOARDS
from tests.grafana.known import ROOT, RULES, rules

ALERTS = rules("alerts.yaml")
RUNBOOK = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
TRIED = yaml.safe_load((ROOT / "tests/grafana/alerts_test.yaml").read_text(encoding="utf-8"))["tests"]
UIDS = {board.uid for board in DASHBOARDS.values()}


def sections() -> dict[str, str]:
    parts = RUNBOOK.split("\n# Procedures")[0].split("\n## ")[1:]
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in parts}


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_its_page_and_its_dashboard(rule: dict[str, Any]) -> None:
    assert rule["labels"] == {"severity": rule["labels"]["severity"]}
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert set(rule["annotations"]) == {"summary", "runbook", "dashboard"}
    assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert rule["annotations"]["dashboard"] in UIDS
    section = sections()[rule["alert"]]
    assert section.lstrip().startswith(f"*{rule['labels']['severity']}.* **Means:**")
    assert "**Look" in section
    assert "do:**" in section.lower()
    # Causes, likeliest first; and how one knows that it has passed.
    assert "**Causes:**" in section
    assert "**Over:**" in section


def test_the_runbook_has_no_section_of_an_alert_that_is_gone() -> None:
    assert list(sections()) == [rule["alert"] for rule in ALERTS]


@pytest.mark.parametrize("name", [rule["alert"] for rule in ALERTS])
def test_every_alert_is_tried_firing_and_silent(name: str) -> None:
    expected = [bool(t["exp_alerts"]) for each in TRIED for t in each["alert_rule_test"] if t["alertname"] == name]
    assert set(expected) == {True, False}


def test_prometheus_is_given_all_rules() -> None:
    config = yaml.safe_load((ROOT / "grafana/prometheus.yaml").read_text(encoding="utf-8"))
    assert {f"rules/{path.name}" for path in RULES.iterdir()} == set(config["rule_files"])
    jobs = {each["job_name"] for each in config["scrape_configs"]}
    assert "vlm-gateway" in jobs
