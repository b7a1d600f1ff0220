from __future__ import annotations

from pathlib import Path

import pytest

from gateway.media.settings import MIB, MediaSettings, PoolSettings, cgroup_cpus, cgroup_memory_bytes, within


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("files", "own", "affinity", "cpus"),
    [
        ({}, "0::/\n", 8, 8),
        ({"cpu.max": "200000 100000\n"}, "0::/\n", 8, 2),
        ({"cpu.max": "max 100000\n"}, "0::/\n", 8, 8),
        ({"pod/cpu.max": "150000 100000\n", "pod/me/cpu.max": "max 100000\n"}, "0::/pod/me\n", 8, 2),
        ({"pod/cpu.max": "50000 100000\n"}, "0::/pod\n", 8, 1),
        ({"cpu/box/cpu.cfs_quota_us": "300000", "cpu/box/cpu.cfs_period_us": "100000"}, "4:cpu,cpuacct:/box\n", 8, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, "4:cpu:/\n", 4, 4),
        ({"cpu.max": "800000 100000\n"}, "0::/\n", 2, 2),
    ],
)
def test_the_width_follows_the_cgroup(
    tmp_path: Path, files: dict[str, str], own: str, affinity: int, cpus: int
) -> None:
    for name, text in files.items():
        write(tmp_path / "cgroup" / name, text)
    write(tmp_path / "own", own)
    assert cgroup_cpus(tmp_path / "cgroup", tmp_path / "own", affinity) == cpus


def test_without_a_cgroup_the_affinity_counts(tmp_path: Path) -> None:
    assert cgroup_cpus(tmp_path / "none", tmp_path / "nowhere", 3) == 3


@pytest.mark.parametrize(
    ("files", "own", "memory_bytes"),
    [
        ({}, "0::/\n", None),
        ({"memory.max": "max\n"}, "0::/\n", None),
        ({"memory.max": "1073741824\n"}, "0::/\n", 1 << 30),
        ({"pod/memory.max": "536870912\n", "pod/me/memory.max": "max\n"}, "0::/pod/me\n", 1 << 29),
        ({"memory/box/memory.limit_in_bytes": "268435456\n"}, "9:memory:/box\n", 1 << 28),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, "9:memory:/\n", None),
    ],
)
def test_memory_follows_the_cgroup(tmp_path: Path, files: dict[str, str], own: str, memory_bytes: int | None) -> None:
    for name, text in files.items():
        write(tmp_path / "cgroup" / name, text)
    write(tmp_path / "own", own)
    assert cgroup_memory_bytes(tmp_path / "cgroup", tmp_path / "own") == memory_bytes


@pytest.mark.parametrize(
    ("memory_mib", "processes", "for_jobs_mib"), [(None, 1, 1024), (8192, 1, 1024), (1024, 1, 512), (1024, 8, 128)]
)
def test_a_small_container_gives_half_of_itself_to_pictures(
    memory_mib: int | None, processes: int, for_jobs_mib: int
) -> None:
    pool = within(PoolSettings(workers=1), None if memory_mib is None else memory_mib * MIB, processes)
    assert (pool.worker_memory_bytes, pool.decode_budget_bytes) == (for_jobs_mib * MIB, for_jobs_mib * MIB)


def test_this_machine_has_a_cpu() -> None:
    assert cgroup_cpus() >= 1


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        MediaSettings(b"short", seed=1)
