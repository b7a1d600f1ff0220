"""What can be set about the image pipeline, and how wide it is by default.

Decided here: names, units and defaults. Not decided here: where values come from (``config``; ``app`` maps them).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.media.confine.report import SandboxMode

MIB = 1024 * 1024
# Version 1 says "no limit" by a number near 2^63.
_NO_LIMIT_BYTES = 1 << 60
_LEAST_WORKER_BYTES = 128 * MIB


def cgroup_cpus(
    cgroup_root: Path = Path("/sys/fs/cgroup"),
    own_cgroup: Path = Path("/proc/self/cgroup"),
    affinity: int | None = None,
) -> int:
    """CPUs this process may really use: the least of its affinity and the quotas of its cgroup and all above it.

    Both cgroup versions; a fraction counts as a whole CPU, since a worker that waits for its quota harms nobody.
    """
    usable = len(os.sched_getaffinity(0)) if affinity is None else affinity
    quotas = [
        quota
        for folder in _cgroup_folders(cgroup_root, own_cgroup, "cpu")
        if (quota := _quota_cpus(folder)) is not None
    ]
    return max(1, min([usable, *(math.ceil(quota) for quota in quotas)]))


def cgroup_memory_bytes(
    cgroup_root: Path = Path("/sys/fs/cgroup"), own_cgroup: Path = Path("/proc/self/cgroup")
) -> int | None:
    """Memory this process and its workers may take together: the least limit of its cgroup and all above it.

    Both cgroup versions; ``None`` where nothing limits it.
    """
    folders = _cgroup_folders(cgroup_root, own_cgroup, "memory")
    return min((limit for folder in folders if (limit := _limit_bytes(folder)) is not None), default=None)


def _limit_bytes(folder: Path) -> int | None:
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            limit = int((folder / name).read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
        return limit if limit < _NO_LIMIT_BYTES else None
    return None


def _cgroup_folders(root: Path, own_cgroup: Path, controller: str) -> list[Path]:
    folders = [root, root / controller]
    try:
        lines = own_cgroup.read_text().splitlines()
    except OSError:
        return folders
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = root / controller if controllers else root
        here = base / path.lstrip("/")
        folders += [here, *(above for above in here.parents if above.is_relative_to(base))]
    return folders


def _quota_cpus(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").is_file():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return None
    return None if quota in ("max", "-1") else int(quota) / int(period)


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The worker processes. ``decode_budget_bytes`` bounds the *predicted* memory of all running jobs together.

    ``workers`` have jobs at one time; ``spare_workers`` more stand ready to take the place of one that is lost.
    ``worker_memory_bytes`` is a hard limit on one worker's private memory; ``recycle_growth_bytes`` replaces a worker
    that keeps more than that above what it started with and its largest job needed. ``output_bytes`` is virtual: the
    longest data URL a worker may produce. ``sandbox`` and ``sandbox_user`` are explained in ``confine``.
    """

    workers: int = field(default_factory=cgroup_cpus)
    spare_workers: int = 0
    codec_backend: str = "pillow-simd"
    job_deadline_s: float = 15.0
    start_deadline_s: float = 60.0
    worker_memory_bytes: int = 1024 * MIB
    decode_budget_bytes: int = 1024 * MIB
    output_bytes: int = 192 * MIB
    max_queue_jobs: int = 512
    recycle_growth_bytes: int = 128 * MIB
    recycle_jobs: int = 10_000
    poison_ttl_s: float = 600.0
    poison_entries: int = 4_096
    worker_nice: int = 10
    sandbox: SandboxMode = "auto"
    sandbox_user: str = "nobody"


def within(pool: PoolSettings, memory_bytes: int | None, processes: int = 1) -> PoolSettings:
    """The same pool where the gateway and its workers may take ``memory_bytes``, shared by so many processes.

    Half is for what jobs need: a picture too large for it costs a worker, or waits, before it costs the container. The
    other half is for bodies in flight, caches and what idle processes take.
    """
    if memory_bytes is None:
        return pool
    for_jobs = max(memory_bytes // 2 // processes, _LEAST_WORKER_BYTES)
    return replace(
        pool,
        worker_memory_bytes=min(pool.worker_memory_bytes, for_jobs),
        decode_budget_bytes=min(pool.decode_budget_bytes, for_jobs),
    )


@dataclass(frozen=True, slots=True)
class MediaSettings:
    """The pipeline as a whole. ``content_key`` (32 bytes) keys every engine identity; ``seed`` the look-up hash.

    ``slab_bytes`` is virtual: memory is used where bodies lie and given back when idle. ``max_prepared_bytes`` bounds
    the prepared images of one request; those of all requests in flight take no more than ``slab_bytes``.
    """

    content_key: bytes
    seed: int
    pool: PoolSettings = field(default_factory=PoolSettings)
    slab_bytes: int = 512 * MIB
    prepared_cache_bytes: int = 256 * MIB
    max_prepared_bytes: int = 128 * MIB
    facts_cache_entries: int = 65_536
    share_between_tenants: bool = False

    def __post_init__(self) -> None:
        if len(self.content_key) != 32:
            raise ValueError("content_key must have 32 bytes")
