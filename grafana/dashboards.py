"""``python -m grafana.dashboards`` writes ``grafana/dashboards/*.json``; a test holds what is committed against it.

Decided here: which dashboards there are, what is annotated on all of them, which metrics are for looking by hand only.
"""

from __future__ import annotations

import json
from pathlib import Path

from grafana.builder import Dashboard, dashboard_json
from grafana.media import MEDIA
from grafana.overview import OVERVIEW
from grafana.promql import own
from grafana.routing import ROUTING
from grafana.tenants import TENANTS

FOLDER = Path(__file__).with_name("dashboards")
DASHBOARDS: dict[str, Dashboard] = {"overview": OVERVIEW, "media": MEDIA, "routing": ROUTING, "tenants": TENANTS}

_RELOADED = own("config_last_reload_success_timestamp_seconds")
ANNOTATIONS = (
    ("reload", f"sum (changes({_RELOADED}[1m])) > 0", "blue"),
    ("drain", f"sum ({own('draining')}) > 0", "orange"),
    ("more than one version", f"count (count by (version) ({own('build_info')})) > 1", "purple"),
)


def text_of(dashboard: Dashboard) -> str:
    """The file's content."""
    return json.dumps(dashboard_json(dashboard, ANNOTATIONS), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all."""
    for name, dashboard in DASHBOARDS.items():
        (FOLDER / f"{name}.json").write_text(text_of(dashboard), encoding="utf-8")


if __name__ == "__main__":
    main()
