"""Who runs first where loop and workers want the same CPU: the loop, at once; workers have what it leaves.

A woken thread is not run before the one that is running has had its slice, unless it asks for shorter ones itself and
is owed time (EEVDF; Linux 6.12 and later, ``kernel/sched/fair.c``: ``do_preempt_short``). Without that the loop waits
for the timer's next tick, 4 ms at 250 Hz: most of its lag beside busy workers. So the loop asks for the shortest slice
there is and workers are nice. Where the system groups tasks by session (autogroup, on by default outside of
containers), a worker's niceness counts only within the session it is alone in; its group's counts besides.

Decided here: how little each asks for. Not decided here: how nice workers are (``settings``). Needs no privilege; what
the system does not know or allow is left as it is, since all of this is a matter of milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import time
from contextlib import suppress
from pathlib import Path

# The kernel's least, clamped there to 0.1 ms (`__setparam_fair`).
_SHORT_SLICE_NS = 100_000
# struct sched_attr in its first version: size, policy, flags, nice, priority, runtime, deadline, period.
_ATTR = struct.Struct("=IIQiIQQQ")
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275), "riscv64": (274, 275)}  # sched_setattr, sched_getattr
_RESET_ON_FORK = 0x01
_AUTOGROUP = "/proc/self/autogroup"
# Unprivileged, all processes of the system together may change one group in 100 ms (`kernel/sched/autogroup.c`).
_AUTOGROUP_TRIES = 20
_AUTOGROUP_PAUSE_S = 0.05


def take_short_turns() -> bool:
    """For the calling thread: short slices, so that it is run as soon as it is woken. Its children do not inherit them.

    ``False`` where the machine's calls are not known, the thread is under another policy, or the system says no.
    """
    calls = _CALLS.get(platform.machine())
    if calls is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    attr = ctypes.create_string_buffer(_ATTR.size)
    set_call, get_call = calls
    if libc.syscall(get_call, 0, attr, _ATTR.size, 0):
        return False
    _, policy, flags, nice, priority, _, deadline, period = _ATTR.unpack(attr.raw)
    wanted = (_ATTR.size, policy, flags | _RESET_ON_FORK, nice, priority, _SHORT_SLICE_NS, deadline, period)
    return bool(libc.syscall(set_call, 0, _ATTR.pack(*wanted), 0) == 0)


class StepBack:
    """A process's way to yield later on: what it has to open for that is opened now, while it still may.

    Starting up is not to be yielded: whoever waits for a worker in place of a lost one waits for its imports.
    """

    def __init__(self) -> None:
        try:
            self._group = os.open(_AUTOGROUP, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self._group = -1  # no such groups here

    def now(self, nice: int) -> None:
        """Be ``nice`` more than before, claim nothing when woken, and have the session be nice too; once.

        May take a second where many processes without privileges step back at once.
        """
        os.nice(nice)
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        if self._group < 0:
            return
        group, self._group = self._group, -1
        try:
            _write_when_allowed(group, str(nice).encode())
        finally:
            os.close(group)


def _write_when_allowed(group: int, nice: bytes) -> None:
    for _ in range(_AUTOGROUP_TRIES):
        try:
            os.write(group, nice)
        except BlockingIOError:
            time.sleep(_AUTOGROUP_PAUSE_S)
        except OSError:
            return
        else:
            return


def kept_waiting_s(pid: int) -> float:
    """How long a process's first thread was ready to run and did not; 0 where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
