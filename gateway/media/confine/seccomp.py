"""The system call filter, put in force. What it says is in ``rules``; how it is spelt for the kernel in ``bpf``."""

from __future__ import annotations

import ctypes
import os
import struct

from gateway.media.confine.bpf import Action, assemble
from gateway.media.confine.kernel import call, machine
from gateway.media.confine.rules import worker_filter

# linux/seccomp.h
_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
# TSYNC: for all threads, should a library have started one. SPEC_ALLOW: without it kernels before 5.16 switch on the
# mitigation of speculative store bypass, which costs decoders some 10 % and guards against code that we do not run.
_TSYNC, _SPEC_ALLOW = 1, 4


def check() -> str:
    """What it would be. Raises OSError where the kernel has no filters that end a process, or the machine no table."""
    call("seccomp", _GET_ACTION_AVAIL, 0, ctypes.create_string_buffer(struct.pack("=I", Action.KILL), 4))
    return "system calls by an allow-list"


def close() -> str:
    """Put the filter in force for this process; what it is. Needs no_new_privs. Raises OSError."""
    told = check()
    program = assemble(worker_filter(machine(), os.getpid()))
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a count, then a pointer at the next multiple of its size.
    count = len(program) // 8
    head = struct.pack("@HxxxxxxP", count, ctypes.addressof(instructions))
    fprog = ctypes.create_string_buffer(head, len(head))
    stuck = call("seccomp", _SET_MODE_FILTER, _TSYNC | _SPEC_ALLOW, fprog)
    if stuck:
        raise OSError(0, f"thread {stuck} cannot be filtered")
    return told
