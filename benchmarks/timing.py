"""Interleaved measurement: all contenders in one run, in random order round by round, compared by medians.

CPU time of this process with all its threads, not wall time: the machine may be busy. Differences of a few percent
between two runs mean nothing; ratios within one run do.
"""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked of a benchmark.

    ``images``: the user's own folder; ``rounds``: ``None`` = default; ``only``: the parts to run, none = all; ``skip``:
    those to leave out.
    """

    images: Path | None = None
    rounds: int | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a contender returns that worked in another process: the CPU milliseconds it took there."""

    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Timing:
    """CPU milliseconds of one contender over all rounds."""

    median_ms: float
    min_ms: float

    def to_json(self) -> dict[str, float]:
        return {"median_ms": round(self.median_ms, 2), "min_ms": round(self.min_ms, 2)}


def interleave(contenders: Mapping[str, Callable[[], object]], rounds: int, seed: int = 1) -> dict[str, Timing]:
    """Run each contender once per round in an order drawn anew, after one round that does not count."""
    order = list(contenders)
    shuffle = random.Random(seed).shuffle
    samples: dict[str, list[float]] = {name: [] for name in order}
    for counted in (False, *(True for _ in range(rounds))):
        shuffle(order)
        for name in order:
            began_s = time.process_time()
            result = contenders[name]()
            here_ms = 1_000 * (time.process_time() - began_s)
            if counted:
                samples[name].append(result.cpu_ms if isinstance(result, Elsewhere) else here_ms)
    return {name: Timing(statistics.median(taken), min(taken)) for name, taken in samples.items()}


def machine_facts() -> dict[str, object]:
    """What the numbers were taken on."""
    return {
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "load_average_1min": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
