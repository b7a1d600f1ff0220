"""Who runs first where loop and workers want the same CPU: the loop, at once; workers have what it leaves.

A woken thread is not run before the one that is running has had its slice, unless it asks for shorter ones itself and
is owed time (EEVDF; Linux 6.12 and later, ``kernel/sched/fair.c``: ``do_preempt_short``). Without that the loop waits
for the timer's next tick, 4 ms at 250 Hz: most of its lag beside busy workers. So the loop asks for the shortest slice
there is and workers are nice. Where the system groups tasks by session (autogroup, on by default outside of
containers), niceness counts within a session, and a session against all others as a whole. So workers stay in the
gateway's: they yield to its loop, and not to whatever else runs on the machine. A session of its own, made nice, left
a worker a tenth of what any busy program got, and an image seconds late.

Decided here: how little each asks for. Not decided here: how nice workers are (``settings``). Needs no privilege; what
the system does not know or allow is left as it is, since all of this is a matter of milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from contextlib import suppress
from pathlib import Path

# The kernel's least, clamped there to 0.1 ms (`__setparam_fair`).
_SHORT_SLICE_NS = 100_000
# struct sched_attr in its first version: size, policy, flags, nice, priority, runtime, deadline, period.
_ATTR = struct.Struct("=IIQiIQQQ")
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275), "riscv64": (274, 275)}  # sched_setattr, sched_getattr
_RESET_ON_FORK = 0x01


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


def step_back(nice: int) -> None:
    """For the calling process: be ``nice`` more than before, and claim nothing when woken.

    Starting up is not to be yielded: whoever waits for a worker in place of a lost one waits for its imports.
    """
    os.nice(nice)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def kept_waiting_s(pid: int) -> float:
    """How long a process's first thread was ready to run and did not; 0 where the kernel does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
