"""Damaged files of every format through real workers, as a request would bring them, and a verdict.

Every input is either accepted or refused with one documented error. Whatever else happens is a finding: an error of
ours, a worker that is not replaced, memory that grows. An input is made from the seed and its number alone, so a
finding is repeated with ``python -m tests.fuzz --seed S --only N``.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gateway.errors import GatewayBug, GatewayError, ImageWorkerLost, Rejected
from gateway.media.codecs import default_backend
from gateway.media.process import WORKER_COMMAND
from gateway.media.service import MediaService
from gateway.media.settings import MIB, MediaSettings, PoolSettings
from tests.fuzz.corpus import corpus
from tests.fuzz.growth import slope
from tests.fuzz.mutate import mutate
from tests.fuzz.send import Input, send

_SAMPLE_EVERY = 250
# Whatever is kept for the largest file so far looks like growth, so memory is judged while a part of the inputs, all
# seen before, is sent once more: what grows then is lost.
_AGAIN_SHARE = 0.2
_MAX_GROWTH_BYTES = {"gateway": 16 * MIB, "worker": 32 * MIB}
_MAX_FINDINGS = 20


@dataclass
class Verdict:
    """What became of the inputs, accepted by seed. ``findings`` says what must not be; none makes a run good."""

    inputs: int
    seed: int
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    lost: list[int] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    restarts: dict[str, int] = field(default_factory=dict)
    growth_bytes: dict[str, int] = field(default_factory=dict)
    memory_bytes: dict[str, int] = field(default_factory=dict)
    took_s: float = 0.0

    def told(self) -> dict[str, object]:
        """The closing line."""
        return {
            "fuzz": "ok" if not self.findings else "findings",
            "inputs": self.inputs,
            "seed": self.seed,
            "accepted": self.accepted.total(),
            "refused": dict(sorted(self.refused.items())),
            "workers_lost_to": self.lost[:_MAX_FINDINGS],
            "restarts": self.restarts,
            "growth_bytes": self.growth_bytes,
            "memory_bytes": self.memory_bytes,
            "seconds": round(self.took_s, 1),
            "findings": self.findings[:_MAX_FINDINGS],
        }


class NoWeb:
    """Nothing is fetched here."""

    async def fetch(self, url: str, **how: object) -> bytes:
        raise AssertionError(f"a file that makes the gateway fetch {url}")


def make_input(seed: int, number: int, seeds: Mapping[str, bytes]) -> Input:
    """The file of this number. The first ones are the corpus itself, undamaged."""
    names, files = tuple(seeds), tuple(seeds.values())
    if number < len(names):
        return Input(number, names[number], files[number])
    rng = random.Random(f"{seed}/{number}")
    at = rng.randrange(len(files))
    return Input(number, names[at], mutate(files[at], files, rng))


async def drive(inputs: int, seed: int, *, first: int = 0, say: Callable[[str], None] = lambda line: None) -> Verdict:
    """Send inputs ``first`` to ``inputs``; ``say`` hears of progress."""
    verdict = Verdict(inputs, seed)
    seeds = corpus()
    began_s = time.monotonic()
    samples: list[tuple[float, float, float]] = []
    async with service() as pipeline:

        async def work(numbers: Iterator[int], into: Verdict, done: Callable[[int], None]) -> None:
            for number in numbers:
                await _one(pipeline, make_input(seed, number, seeds), into)
                done(number)

        async def send_all(numbers: range, into: Verdict, done: Callable[[int], None]) -> None:
            taken = iter(numbers)
            await asyncio.gather(*(work(taken, into, done) for _ in range(2 * (os.cpu_count() or 1))))

        def tell(number: int) -> None:
            if number and number % 10_000 == 0:
                told = f"{number} inputs, {verdict.accepted.total()} accepted, {len(verdict.lost)} lost"
                say(f"{told}, {_own_bytes():.0f} bytes here, {_mean_worker_bytes(pipeline):.0f} in a worker")

        def sample(number: int) -> None:
            if number % _SAMPLE_EVERY == 0:
                samples.append((number, _own_bytes(), _mean_worker_bytes(pipeline)))

        await send_all(range(first, inputs), verdict, tell)
        again = Verdict(inputs, seed)
        await send_all(range(first, first + int((inputs - first) * _AGAIN_SHARE)), again, sample)
        verdict.findings += again.findings
        await _judge_workers(pipeline, verdict)
    verdict.took_s = time.monotonic() - began_s
    _judge_growth(samples, verdict)
    return verdict


@asynccontextmanager
async def service() -> AsyncIterator[MediaService]:
    """A small gateway's image pipeline: caches that fill at once, workers that are not replaced for their age."""
    pool = PoolSettings(
        codec_backend=default_backend(),
        worker_memory_bytes=512 * MIB,
        output_bytes=16 * MIB,
        recycle_jobs=1 << 62,
        job_deadline_s=10.0,
    )
    settings = MediaSettings(
        content_key=bytes(32), seed=1, pool=pool, slab_bytes=64 * MIB, prepared_cache_bytes=MIB, facts_cache_entries=128
    )
    made = MediaService(settings, NoWeb(), command=WORKER_COMMAND)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


async def _one(service: MediaService, given: Input, verdict: Verdict) -> None:
    try:
        await send(service, given)
    except ImageWorkerLost as error:
        verdict.refused[error.code] += 1
        verdict.lost.append(given.number)
    except GatewayError as error:
        verdict.refused[error.code] += 1
        if not isinstance(error, Rejected) or isinstance(error, GatewayBug):
            verdict.findings.append(f"{given.number} ({given.name}): {error.code}: {error.detail}")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        verdict.findings.append(f"{given.number} ({given.name}): {type(error).__name__}: {error}")
    else:
        verdict.accepted[given.name] += 1


async def _judge_workers(service: MediaService, verdict: Verdict) -> None:
    """Every worker that was lost has been replaced."""
    width = PoolSettings().workers
    until_s = time.monotonic() + 30
    while service.facts().pool.workers < width and time.monotonic() < until_s:  # noqa: ASYNC110 - other processes
        await asyncio.sleep(0.01)
    facts = service.facts()
    verdict.restarts = dict(facts.pool.restarts)
    if facts.pool.workers != width:
        verdict.findings.append(f"{facts.pool.workers} of {width} workers are left")
    if facts.slab_in_use_bytes:
        verdict.findings.append(f"{facts.slab_in_use_bytes} bytes of shared memory were not given back")
    if forbidden := facts.pool.restarts.get("forbidden"):
        verdict.findings.append(f"{forbidden} workers were ended by the system call filter")


def _judge_growth(samples: Sequence[tuple[float, float, float]], verdict: Verdict) -> None:
    for index, name in ((1, "gateway"), (2, "worker")):
        line = sorted((sample[0], sample[index]) for sample in samples)
        verdict.growth_bytes[name] = int(slope(line) * verdict.inputs)
        verdict.memory_bytes[name] = int(line[-1][1]) if line else 0
        if verdict.growth_bytes[name] > _MAX_GROWTH_BYTES[name]:
            verdict.findings.append(f"{name}: {verdict.growth_bytes[name]} bytes of growth in {verdict.inputs} inputs")


def _own_bytes() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def _mean_worker_bytes(service: MediaService) -> float:
    facts = service.facts().pool
    return facts.rss_bytes / max(1, facts.workers)
