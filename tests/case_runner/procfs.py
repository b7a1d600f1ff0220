"""What the kernel knows of the gateway's processes: who they are, what they hold, whether they work.

A gateway is started as leader of its own session, so its processes are those of that session, whoever their parent is.
Memory is the proportional set size: shared pages are counted once over all processes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_WORKER_MODULE = b"gateway.media.worker"


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of /proc/PID/stat that are needed here."""

    pid: int
    state: str
    parent: int
    session: int


def read_stat(pid: int) -> ProcessStat | None:
    """None when there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="latin-1")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return ProcessStat(pid, fields[0], int(fields[1]), int(fields[3]))


def session_processes(session: int, *, with_zombies: bool = True) -> list[int]:
    """All processes of a session."""
    stats = (read_stat(int(each.name)) for each in _PROC.iterdir() if each.name.isdigit())
    return sorted(
        each.pid
        for each in stats
        if each is not None and each.session == session and (with_zombies or each.state not in {"Z", "X"})
    )


def image_workers(session: int) -> list[int]:
    """The living image workers of a gateway."""
    found = []
    for pid in session_processes(session, with_zombies=False):
        try:
            command = (_PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            continue
        if _WORKER_MODULE in command:
            found.append(pid)
    return found


def cpu_ns(pid: int) -> int | None:
    """CPU time of a process's first thread, exact to the scheduler's clock; None when it is gone."""
    try:
        return int((_PROC / str(pid) / "schedstat").read_text(encoding="ascii").split()[0])
    except (OSError, IndexError, ValueError):
        return None


def memory_bytes(session: int) -> int:
    """Memory of all processes of a session, shared pages once."""
    return sum(_proportional(pid) for pid in session_processes(session, with_zombies=False))


def _proportional(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def open_files(session: int) -> int:
    """Open descriptors of all processes of a session."""
    count = 0
    for pid in session_processes(session, with_zombies=False):
        try:
            count += len(os.listdir(_PROC / str(pid) / "fd"))
        except OSError:
            continue
    return count
