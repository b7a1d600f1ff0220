"""The values of the declared metrics, and their exposition.

Decided here: how a value is kept and when it is read. Metrics live in the loop's process only (workers return facts),
are rendered in the admin thread, and have no ``_created`` series. Not decided here: which metrics exist
(``catalogue``).
"""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gateway.telemetry.catalogue import DECLARATIONS, Declaration, Kind

Sample = tuple[str, tuple[str, ...], float]
Bucket = tuple[str, float] | tuple[str, float, Exemplar]


class _Counts:
    """One histogram child. Plain numbers, not the library's locked values: every request touches twenty of them."""

    __slots__ = ("bounds", "counts", "exemplars", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.exemplars: dict[int, Exemplar] | None = None

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Many at once: sorted, so that a bucket costs a search and a value nothing."""
        if len(values) < len(self.bounds):
            for value in values:
                self.observe(value)
            return
        ordered, below = sorted(values), 0
        for bucket, bound in enumerate(self.bounds):
            within = bisect_right(ordered, bound, below)
            self.counts[bucket] += within - below
            below = within
        self.counts[-1] += len(ordered) - below
        self.total += sum(ordered)

    def exemplify(self, value: float, exemplar: Exemplar) -> None:
        if self.exemplars is None:
            self.exemplars = {}
        self.exemplars[bisect_left(self.bounds, value)] = exemplar

    def buckets(self) -> list[Bucket]:
        """Cumulative counts by upper bound, as the exposition format has them."""
        names = [*(str(bound) for bound in self.bounds), "+Inf"]
        pairs = zip(names, itertools.accumulate(self.counts), strict=True)
        if self.exemplars is None:
            return list(pairs)
        exemplars = dict(self.exemplars)
        return [(*pair, exemplars[at]) if at in exemplars else pair for at, pair in enumerate(pairs)]


class Metrics:
    """The values of all declared metrics. ``render`` is called in the admin thread.

    Counters and histograms are updated by the loop as exchanges end, and only by it, so plain numbers suffice; a scrape
    that reads in between sees a batch of them half counted, never a wrong number. The library keeps the registry and
    the exposition format. Every gauge is read when scraped, from the sampler that ``app`` gives.
    """

    def __init__(self) -> None:
        self._declared = {d.name: d for d in DECLARATIONS}
        self._counters: dict[tuple[str, ...], float] = {}
        self._histograms: dict[tuple[str, ...], _Counts] = {}
        self._sampler: Callable[[], Iterable[Sample]] = tuple
        self._current: dict[str, Callable[[], Collection[str]]] = {}
        self.registry = CollectorRegistry()
        self.registry.register(_Collected(self._families))
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)
        for d in DECLARATIONS:
            if not d.labels and not d.sampled:
                self._start(d)

    def _start(self, d: Declaration) -> None:
        """Metrics without labels exist from the start, so that a rate over them is defined before the first event."""
        if d.kind is Kind.COUNTER:
            self._counters[d.name,] = 0.0
        else:
            self._histograms[d.name,] = _Counts(d.buckets)

    def inc(self, name: str, *labels: str, by: float = 1) -> None:
        """Add to a counter. Raises KeyError for one that is not declared, ValueError for the wrong number of labels."""
        key = (name, *labels)
        value = self._counters.get(key)
        if value is None:
            self._check(name, labels, Kind.COUNTER)
            value = 0.0
        self._counters[key] = value + by

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Put a value into a histogram; raises as ``inc`` does."""
        counts = self._histograms.get((name, *labels))
        if counts is None:
            counts = self._begun(name, *labels)
        counts.observe(value)

    def _begun(self, name: str, *labels: str) -> _Counts:
        """A histogram child that nobody had put anything into."""
        self._check(name, labels, Kind.HISTOGRAM)
        counts = self._histograms[(name, *labels)] = _Counts(self._declared[name].buckets)
        return counts

    def observe_all(self, name: str, values: Sequence[float], *labels: str) -> None:
        """``observe`` for many values of one series; without any it does not begin."""
        if values:
            (self._histograms.get((name, *labels)) or self._begun(name, *labels)).observe_all(values)

    def exemplify(self, name: str, value: float, *labels: str, trace_id: str) -> None:
        """Name the trace behind a value that was observed just now; the newest of each bucket is told (OpenMetrics)."""
        self._histograms[(name, *labels)].exemplify(value, Exemplar({"trace_id": trace_id}, value, time.time()))

    def _check(self, name: str, labels: tuple[str, ...], kind: Kind) -> None:
        d = self._declared[name]
        if d.kind is not kind or d.sampled or len(labels) != len(d.labels):
            raise ValueError(
                f"{name} is a {d.kind.value} with labels {d.labels}, not a {kind.value} with {len(labels)}"
            )

    def sample(self, sampler: Callable[[], Iterable[Sample]], **current: Callable[[], Collection[str]]) -> None:
        """Read all sampled metrics from ``sampler`` at every scrape: it yields (declared name, label values, value).

        Series whose label is none of its ``current`` values are then forgotten: of who has left for good.
        """
        self._sampler = sampler
        self._current = current

    def _forget(self) -> None:
        for label, values in self._current.items():
            current = values()
            at = {d.name: d.labels.index(label) + 1 for d in self._declared.values() if label in d.labels}
            for series in (self._counters, self._histograms):
                for key in [key for key in list(series) if key[0] in at and key[at[key[0]]] not in current]:
                    series.pop(key, None)

    def render(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return prometheus_client.generate_latest(self.registry)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """All metrics, and the content type: OpenMetrics, with exemplars, where the header ``accept`` asks for it."""
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # the library's, over versions that are none
            encode, content_type = choose_encoder("")
        return encode(self.registry), content_type

    def _families(self) -> Iterable[Metric]:
        self._forget()
        values: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for (name, *labels), value in list(self._counters.items()):
            values.setdefault(name, []).append((tuple(labels), value))
        for name, labels_, value in self._sampler():
            values.setdefault(name, []).append((labels_, value))
        for name, samples in values.items():
            d = self._declared[name]
            make = GaugeMetricFamily if d.kind is Kind.GAUGE else CounterMetricFamily
            family = make(d.full_name, d.help, labels=d.labels)
            for labels_, value in samples:
                family.add_metric(labels_, value)
            yield family
        histograms: dict[str, HistogramMetricFamily] = {}
        for (name, *labels), counts in list(self._histograms.items()):
            d = self._declared[name]
            found = histograms.get(name)
            if found is None:
                found = histograms[name] = HistogramMetricFamily(d.full_name, d.help, labels=d.labels)
            found.add_metric(labels, counts.buckets(), counts.total)
        yield from histograms.values()


class _Collected(Collector):
    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        return self._families()
