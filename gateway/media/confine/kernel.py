"""The calls to the kernel that Python has no name for. Every function raises OSError with the kernel's errno.

Decided here: how a call is made. Not decided here: which, when and with what.
"""

from __future__ import annotations

import ctypes
import os
import platform

from gateway.media.confine.machines import MACHINES, Machine

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def machine() -> Machine:
    """This machine's table. Raises OSError where there is none."""
    name = platform.machine()
    found = MACHINES.get(name)
    if found is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        raise OSError(0, f"no table of system calls for {name}")
    return found


def prctl(option: int, value: int, *more: int) -> int:
    """prctl(2)."""
    words = [ctypes.c_ulong(each) for each in (value, *more, 0, 0, 0)[:4]]
    return _checked(int(_libc.prctl(ctypes.c_int(option), *words)), "prctl")


def call(name: str, *args: int | ctypes.Array[ctypes.c_char] | None) -> int:
    """A system call by its name in the machine's table; buffers are passed by address."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in args]
    return _checked(int(_libc.syscall(ctypes.c_long(machine().numbers[name]), *words)), name)


def _checked(result: int, name: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result
