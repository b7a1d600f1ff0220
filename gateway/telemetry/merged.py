"""The metrics of several processes as those of one gateway: what was counted is added up, what is measured told apart.

Decided here: counters and histograms are summed, over processes that are gone as well, so that they never fall; gauges
carry whose they are in the label ``process`` and vanish with it. Not decided here: who the processes are, when they are
asked. Pages are in Prometheus' text format (0.0.4), as ``metrics`` writes it: a family's help and type stand before its
samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SAMPLE = re.compile(r"^(\w+)(\{.*\})? (\S+)$")
_SUMMED = frozenset({"counter", "histogram"})


class _Sample(NamedTuple):
    """One line. ``series`` is name and labels, ``family`` what its help and type are of."""

    family: str
    series: str
    value: float


@dataclass(slots=True)
class _Page:
    """One process's metrics. ``heads``: a family's lines of help and type."""

    heads: dict[str, str] = field(default_factory=dict)
    counts: list[_Sample] = field(default_factory=list)
    measures: list[_Sample] = field(default_factory=list)


class MergedMetrics:
    """``tell`` a process's page whenever it was read, ``bury`` it once it is gone, ``render`` all."""

    def __init__(self) -> None:
        self._pages: dict[int, _Page] = {}
        self._silent: set[int] = set()
        self._buried: dict[str, float] = {}
        self._families: dict[str, str] = {}
        self._shown: dict[str, float] = {}

    def tell(self, process: int, page: str | None) -> None:
        """``None``: it did not answer in time; what it had counted still counts, what it had measured is old."""
        if page is None:
            self._silent.add(process)
            return
        self._silent.discard(process)
        self._pages[process] = read = _read(page)
        self._families |= read.heads

    def bury(self, process: int) -> None:
        """It is gone; its counts stay."""
        page = self._pages.pop(process, None)
        if page is not None:
            for _, series, value in page.counts:
                self._buried[series] = self._buried.get(series, 0.0) + value

    def render(self) -> str:
        """All families in one page."""
        lines: dict[str, list[str]] = {}
        for family, series, value in self._counts():
            lines.setdefault(family, []).append(f"{series} {_written(value)}")
        for process, page in self._pages.items():
            if process not in self._silent:
                for family, series, value in page.measures:
                    lines.setdefault(family, []).append(f"{_labelled(series, process)} {_written(value)}")
        return "".join(self._families[family] + "\n".join(samples) + "\n" for family, samples in lines.items())

    def _counts(self) -> Iterator[_Sample]:
        values: dict[str, list[float]] = {}
        families: dict[str, str] = {}
        for page in self._pages.values():
            for family, series, value in page.counts:
                values.setdefault(series, []).append(value)
                families[series] = family
        for series, value in self._buried.items():
            values.setdefault(series, []).append(value)
            families.setdefault(series, self._family_of(series))
        # Sums of fractions may fall by a last digit when their order changes. What nobody tells of any more (a backend
        # that left) is forgotten, and begins anew when it comes back, as in one process.
        self._shown = {series: max(math.fsum(parts), self._shown.get(series, 0.0)) for series, parts in values.items()}
        for series, shown in self._shown.items():
            yield _Sample(families[series], series, shown)

    def _family_of(self, series: str) -> str:
        name = series.partition("{")[0]
        return name if name in self._families else name.rpartition("_")[0]


def _read(text: str) -> _Page:
    page = _Page()
    family, kind, head = "", "", ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            head = line + "\n"
        elif line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ", 3)
            page.heads[family] = head + line + "\n"
        elif (sample := _SAMPLE.match(line)) is not None:
            into = page.counts if kind in _SUMMED else page.measures
            into.append(_Sample(family, sample[1] + (sample[2] or ""), float(sample[3])))
    return page


def _labelled(series: str, process: int) -> str:
    name, brace, labels = series.partition("{")
    return f'{name}{{process="{process}"' + (f",{labels}" if brace else "}")


def _written(value: float) -> str:
    return repr(value) if math.isfinite(value) else {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
