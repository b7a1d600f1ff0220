"""What the kernel knows of the gateway's processes: who they are, what they hold, whether they work.

A gateway's processes are the descendants of its main process and of their sessions, remembered by pid and start time,
so that one that outlives its parent is still known. Memory is the proportional set size: shared pages count once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_WORKER_MODULE = b"gateway.media.worker"
_DEAD = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of /proc/PID/stat that are needed here; ``started`` in clock ticks since boot."""

    pid: int
    state: str
    parent: int
    session: int
    started: int


def read_stat(pid: int) -> ProcessStat | None:
    """None when there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="latin-1")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return ProcessStat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


class Family:
    """All processes of one gateway, from its main process on. Every look also remembers."""

    def __init__(self, main: int) -> None:
        self.main = main
        self._known: dict[int, int] = {}  # pid -> started
        self._sessions: set[int] = {main}

    def members(self, *, with_zombies: bool = True) -> list[int]:
        """The processes that are there now."""
        pids = [int(each.name) for each in _PROC.iterdir() if each.name.isdigit()]
        stats = {stat.pid: stat for stat in map(read_stat, pids) if stat is not None}
        found = {pid for pid, started in self._known.items() if pid in stats and stats[pid].started == started}
        if self.main in stats and not self._known:
            found.add(self.main)
        grew = True
        while grew:
            own = {pid for pid, stat in stats.items() if stat.parent in found or stat.session in self._sessions}
            grew = not own <= found
            found |= own
            self._sessions |= {stats[pid].session for pid in found if stats[pid].session in found}
        self._known |= {pid: stats[pid].started for pid in found}
        return sorted(pid for pid in found if with_zombies or stats[pid].state not in _DEAD)

    def image_workers(self) -> list[int]:
        """The living image workers."""
        return [pid for pid in self.members(with_zombies=False) if _WORKER_MODULE in _command(pid)]

    def memory_bytes(self) -> int:
        """Memory of all processes, shared pages once."""
        return sum(_proportional(pid) for pid in self.members(with_zombies=False))

    def open_files(self) -> int:
        """Open descriptors of all processes."""
        return sum(_open_files(pid) for pid in self.members(with_zombies=False))


def _command(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def cpu_ns(pid: int) -> int | None:
    """CPU time of all threads of a process, exact to the scheduler's clock; None when it is gone."""
    return _of_scheduler(pid, 0)


def waited_ns(pid: int) -> int | None:
    """How long all threads of a process waited for a CPU; None when it is gone, or the kernel does not tell."""
    return _of_scheduler(pid, 1)


def _of_scheduler(pid: int, column: int) -> int | None:
    total = 0
    try:
        for task in (_PROC / str(pid) / "task").iterdir():
            total += int((task / "schedstat").read_text(encoding="ascii").split()[column])
    except (OSError, ValueError, IndexError):
        return None
    return total


def _proportional(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def _open_files(pid: int) -> int:
    try:
        return sum(1 for _ in (_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return 0
