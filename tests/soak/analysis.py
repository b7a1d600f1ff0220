"""From samples and answers to a verdict. Pure: what was measured is an argument, and so are the bounds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from tests.fuzz.growth import slope
from tests.soak.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Sample:
    """What one look found. Bytes are anonymous resident memory; ``workers_bytes`` of all image workers together;
    ``errand_s`` is how long a fixed piece of work took the machine, which has others to serve."""

    at_s: float
    gateway_bytes: float
    workers_bytes: float
    descriptors: float
    threads: float
    slab_bytes: float
    errand_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """One act of a client: when it began, how long it took, what came of it (``"200"``, ``"401 unauthenticated"``)."""

    kind: str
    at_s: float
    took_s: float
    what: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the verdict. ``bound`` is told as it is read by people."""

    name: str
    value: float
    bound: str
    held: bool


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one kind, in milliseconds; ``drift`` is the last third's median over the first's, 0 where too few came."""

    kind: str
    count: int
    p50_ms: float
    p99_ms: float
    drift: float
    held: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """``unexpected`` counts what no kind should see, by kind and what it was."""

    rows: tuple[Row, ...]
    latencies: tuple[Latency, ...]
    unexpected: Mapping[str, int] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        judged: tuple[Row | Latency, ...] = (*self.rows, *self.latencies)
        return not self.unexpected and all(each.held for each in judged)


# Field of a sample, its name for people, what one unit of the slope is, and which bound it has.
_SLOPES = (
    ("gateway_bytes", "gateway memory, KiB a minute", 1024, "gateway_kib_a_minute"),
    ("workers_bytes", "workers' memory, KiB a minute", 1024, "workers_kib_a_minute"),
    ("slab_bytes", "shared memory held, KiB a minute", 1024, "slab_kib_a_minute"),
    ("descriptors", "descriptors a minute", 1, "descriptors_a_minute"),
    ("threads", "threads a minute", 1, "threads_a_minute"),
)


def judge(
    samples: Sequence[Sample],
    seen: Sequence[Seen],
    expected: Mapping[str, frozenset[str]],
    bounds: Bounds,
    at_end: Iterable[Row] = (),
) -> Verdict:
    """``samples`` and ``seen`` are what came after the warm-up; answers are checked by ``expected``, of every kind."""
    rows = [_slope_row(samples, *each, bounds) for each in _SLOPES]
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for each in seen:
        kinds[each.kind].append(each)
    wrong = Counter(f"{each.kind}: {each.what}" for each in seen if each.what not in expected[each.kind])
    silent = {f"{kind}: never answered": 1 for kind in expected.keys() - kinds.keys()}
    slower = slowdown(samples)
    latencies = tuple(_latency(kind, kinds[kind], bounds, slower) for kind in sorted(kinds))
    return Verdict((*rows, *at_end), latencies, {**wrong, **silent})


def _slope_row(samples: Sequence[Sample], name: str, told: str, unit: int, bound_name: str, bounds: Bounds) -> Row:
    a_minute = 60 * slope([(each.at_s, getattr(each, name)) for each in samples]) / unit
    bound: float = getattr(bounds, bound_name)
    return Row(told, round(a_minute, 1), f"<= {bound:g}", a_minute <= bound)


def slowdown(samples: Sequence[Sample]) -> float:
    """How much slower the machine itself was in the last third than in the first; at least 1."""
    first, last = _outer_thirds([(each.at_s, each.errand_s) for each in samples])
    return max(1.0, median(last) / max(median(first), 1e-6))


def _outer_thirds(values: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    start, stop = min(at for at, _ in values), max(at for at, _ in values)
    third = (stop - start) / 3
    first = [value for at, value in values if at <= start + third]
    return first, [value for at, value in values if at >= start + 2 * third]


def _latency(kind: str, seen: Sequence[Seen], bounds: Bounds, slower: float) -> Latency:
    took = sorted(each.took_s for each in seen)
    first, last = _outer_thirds([(each.at_s, each.took_s) for each in seen])
    drift, held = 0.0, True
    if min(len(first), len(last)) >= bounds.fewest_answers:
        before, after = median(first), median(last)
        drift = after / max(before, 1e-6)
        held = drift <= bounds.latency_ratio * slower or after - before <= bounds.latency_s
    p99 = took[min(len(took) - 1, int(0.99 * len(took)))]
    return Latency(kind, len(took), round(1e3 * median(took), 1), round(1e3 * p99, 1), round(drift, 2), held)
