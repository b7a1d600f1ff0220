"""One soak from start to rest: traffic at a bounded rate, a look every second, and whether all is given back."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.soak.analysis import Row, Sample, Seen, Verdict, judge, slowdown
from tests.soak.bounds import Bounds, bounds_of, warm_up_s
from tests.soak.kinds import Clients, Kind
from tests.soak.measuring import sample, totals
from tests.soak.site import SUMS, Site, site

_LOOK_S = 1.0
# Of one kind at one time; what would be more is not sent, so that a slow machine gets less and not a pile.
_AT_ONCE = 4
_ACT_TIMEOUT_S = 120.0
_REST_S = 60.0
_SAY_S = 30.0
# What must be zero when nobody asks any more.
_ZERO = (
    "requests_inflight", "backend_inflight", "budget_reserved_tokens", "budget_waiting_requests", "body_memory_bytes",
    "pool_busy", "pool_queued", "pool_reserved_bytes",
)  # fmt: skip


@dataclass
class Report:
    """What was seen. ``facts`` are told and not judged, and so are ``causes`` of 5xx, by the gateway's access log."""

    minutes: float
    samples: list[Sample] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    causes: Counter[str] = field(default_factory=Counter)
    verdict: Verdict | None = None


async def soak(minutes: float, folder: Path, say: Callable[[str], None]) -> Report:
    """Run for so long; ``say`` hears of progress."""
    report = Report(minutes)
    bounds = bounds_of(minutes)
    async with site(folder) as made:
        looks = _Looks(made, report.samples)
        before = await looks.once()
        expected = await _traffic(made, report, looks, say)
        at_end = [*await looks.rested(before, bounds), *_died(await looks.metrics())]
        if "Traceback" in made.gateway.said:
            at_end.append(Row("tracebacks", 1, "none", held=False))
        report.facts = _facts(await looks.metrics(), report)
        report.causes = _causes(made)
    judged_from = report.samples[0].at_s + warm_up_s(minutes)
    # The last look came when all was over.
    looked = [each for each in report.samples if each.at_s >= judged_from]
    answered = [each for each in report.seen if each.at_s >= judged_from]
    report.verdict = judge(looked, answered, expected, bounds, at_end)
    return report


class _Looks:
    def __init__(self, made: Site, samples: list[Sample]) -> None:
        self._site = made
        self._samples = samples

    async def metrics(self) -> dict[str, float]:
        async with aiohttp.ClientSession() as session, session.get(f"{self._site.gateway.admin}/metrics") as answer:
            return totals(await answer.text())

    async def once(self) -> Sample:
        gateway = self._site.gateway
        return sample(time.monotonic(), gateway.pid, gateway.workers(), await self.metrics())

    async def keep(self) -> None:
        """A look every second, until cancelled."""
        due_s = time.monotonic()
        while True:
            self._samples.append(await self.once())
            due_s = max(due_s + _LOOK_S, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())

    async def rested(self, before: Sample, bounds: Bounds) -> list[Row]:
        """Wait until no more is held than before the traffic, and tell what is held nevertheless.

        Connections to engines that nobody uses are kept for some seconds by design.
        """
        until_s = time.monotonic() + _REST_S
        rows = await self._held(before, bounds)
        while not all(row.held for row in rows) and time.monotonic() < until_s:
            await asyncio.sleep(0.2)
            rows = await self._held(before, bounds)
        return rows

    async def _held(self, before: Sample, bounds: Bounds) -> list[Row]:
        metrics = await self.metrics()
        held = {name: metrics.get(name, 0.0) for name in _ZERO}
        held["budgets in Redis"] = float(sum(len(self._site.redis.hash(key)) for key in SUMS))
        rows = [Row(f"{name} at the end", value, "0", held=not value) for name, value in held.items()]
        return [*rows, *_kept(before, await self.once(), bounds)]


async def _traffic(made: Site, report: Report, looks: _Looks, say: Callable[[str], None]) -> dict[str, frozenset[str]]:
    """Until the time is over and every act came to its end; what each kind expects."""
    limit = aiohttp.ClientTimeout(total=_ACT_TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=limit, auto_decompress=False) as session:
        kinds = Clients(made, session).kinds()
        looking = asyncio.create_task(looks.keep())
        telling = asyncio.create_task(_tell(report, say))
        end_s = time.monotonic() + 60 * report.minutes
        try:
            await asyncio.gather(*(_send(kind, index, end_s, report.seen) for index, kind in enumerate(kinds)))
        finally:
            telling.cancel()
            looking.cancel()
            await asyncio.gather(looking, telling, return_exceptions=True)
    return {kind.name: kind.expected for kind in kinds}


async def _send(kind: Kind, index: int, end_s: float, seen: list[Seen]) -> None:
    """One kind at its rate: acts begin when they are due, or not at all where ``_AT_ONCE`` are under way."""
    running: set[asyncio.Task[None]] = set()
    number = 0
    due_s = time.monotonic() + kind.every_s * index / 14  # not all kinds at one moment
    while due_s < end_s:
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        if len(running) < _AT_ONCE:
            task = asyncio.create_task(_act(kind, number, seen))
            running.add(task)
            task.add_done_callback(running.discard)
            number += 1
        due_s = max(due_s + kind.every_s, time.monotonic())
    await asyncio.gather(*running)


async def _act(kind: Kind, number: int, seen: list[Seen]) -> None:
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(_ACT_TIMEOUT_S):
            what = await kind.act(number)
    except Exception as error:  # noqa: BLE001 - whatever a client runs into is what was seen
        what = f"{type(error).__name__}: {error}"
    seen.append(Seen(kind.name, began_s, time.monotonic() - began_s, what))


async def _tell(report: Report, say: Callable[[str], None]) -> None:
    began_s = time.monotonic()
    while True:
        await asyncio.sleep(_SAY_S)
        last = report.samples[-1]
        mib = 1 << 20
        say(
            f"{time.monotonic() - began_s:5.0f} s: {len(report.seen)} acts, gateway {last.gateway_bytes / mib:.1f} MiB,"
            f" workers {last.workers_bytes / mib:.1f} MiB, {last.descriptors:.0f} descriptors"
        )


def _kept(before: Sample, after: Sample, bounds: Bounds) -> list[Row]:
    found = []
    for name, most in (("descriptors", bounds.descriptors_kept), ("threads", bounds.threads_kept)):
        more = getattr(after, name) - getattr(before, name)
        found.append(Row(f"{name} more at the end", more, f"<= {most}", more <= most))
    return found


def _died(metrics: dict[str, float]) -> list[Row]:
    """Nothing of this traffic may cost a worker, and the store was there all the time."""
    return [
        Row("workers replaced", metrics.get("pool_restarts_total", 0.0), "0", not metrics.get("pool_restarts_total")),
        Row("store away", metrics.get("state_degraded", 0.0), "0", not metrics.get("state_degraded")),
    ]


def _causes(made: Site) -> Counter[str]:
    """What the log tells of answers that none of this traffic should see."""
    failed = [line for line in made.gateway.lines("exchange") if (line.get("status") or 0) >= 500]
    return Counter(f"{line.get('code')}: {line.get('detail')}" for line in failed)


def _facts(metrics: dict[str, float], report: Report) -> dict[str, float]:
    mib = 1 << 20
    count = metrics.get("loop_lag_seconds_count", 0.0)
    return {
        "acts": len(report.seen),
        "acts_a_second": round(len(report.seen) / (60 * report.minutes), 1),
        "loop_lag_mean_ms": round(1e3 * metrics.get("loop_lag_seconds_sum", 0.0) / max(1.0, count), 2),
        "loop_stalls_over_50_ms": metrics.get("loop_stalls_total", 0.0),
        "gateway_mib_first": round(report.samples[0].gateway_bytes / mib, 1),
        "gateway_mib_last": round(report.samples[-1].gateway_bytes / mib, 1),
        "workers_mib_last": round(report.samples[-1].workers_bytes / mib, 1),
        "descriptors_most": max(each.descriptors for each in report.samples),
        "machine_slower_at_the_end": round(slowdown(report.samples), 2),
        "slab_mib_most": round(max(each.slab_bytes for each in report.samples) / mib, 1),
    }
