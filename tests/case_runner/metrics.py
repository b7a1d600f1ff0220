"""The gateway's metrics as a scrape shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

REQUESTS = "vlmgw_requests_total"
RESERVED = "vlmgw_budget_reserved_tokens"
# What the cases call an outcome -> the label ``outcome`` of the gateway's request counter.
OUTCOMES = {"failure": "backend_failed", "cancelled": "client_gone"}
_LINE = re.compile(r"^([A-Za-z_:][\w:]*(?:\{.*\})?)\s+(\S+)", re.MULTILINE)
_COUNTS = ("_total", "_count", "_sum", "_bucket")


@dataclass(frozen=True, slots=True)
class Scrape:
    """One exposition: its text and its series."""

    text: str
    series: dict[str, float] = field(default_factory=dict)

    def total(self, name: str, label: str = "") -> float:
        """The sum over the series of a metric whose labels hold ``label``."""
        return sum(value for key, value in self.series.items() if key.split("{")[0] == name and label in key)

    def counters(self) -> dict[str, float]:
        """The series that may never decrease."""
        return {key: value for key, value in self.series.items() if key.split("{")[0].endswith(_COUNTS)}

    @property
    def is_degraded(self) -> bool:
        """Whether the shared store is reported as gone."""
        return any(
            ("degraded" in key and value > 0) or (key.split("{")[0].endswith("store_up") and value == 0)
            for key, value in self.series.items()
        )


def read_scrape(text: str) -> Scrape:
    """Parse the Prometheus text format as far as it is needed."""
    series = {}
    for match in _LINE.finditer(text):
        try:
            series[match[1]] = float(match[2])
        except ValueError:
            continue
    return Scrape(text, series)
