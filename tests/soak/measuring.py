"""Looking at a gateway from outside: its memory by /proc, its own numbers by /metrics."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

from tests.soak.analysis import Sample

_SERIES = re.compile(r"^vlmgw_(\w+?)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)

_ERRAND = 200_000


def anonymous_bytes(pid: int) -> int:
    """Resident memory that is nobody else's: no shared memory, no files. 0 for a process that is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def counted(pid: int, what: str) -> int:
    """How many entries ``/proc/PID/fd`` or ``/proc/PID/task`` has."""
    with suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/{what}").iterdir())
    return 0


def totals(exposition: str) -> dict[str, float]:
    """Every metric of ours with its samples summed."""
    found: dict[str, float] = {}
    for name, value in _SERIES.findall(exposition):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def errand_s() -> float:
    """How long a fixed piece of work takes now: some milliseconds where nothing else wants the processor."""
    began_s = time.perf_counter()
    sum(range(_ERRAND))
    return time.perf_counter() - began_s


def sample(at_s: float, pid: int, workers: list[int], metrics: dict[str, float]) -> Sample:
    """One look."""
    return Sample(
        at_s,
        anonymous_bytes(pid),
        sum(map(anonymous_bytes, workers)),
        counted(pid, "fd"),
        counted(pid, "task"),
        metrics.get("body_memory_bytes", 0.0),
        errand_s(),
    )
