from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.media.confine.bpf import Action, assemble
from gateway.media.confine.machines import MACHINES, Machine
from gateway.media.confine.rules import worker_filter
from tests.media.confine.bpf_machine import run

PID = 4711
machines = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())


def decide(machine: Machine, name: str, *args: int) -> Action:
    return worker_filter(machine, PID).decide(machine.audit_arch, machine.numbers[name], [*args, 0, 0, 0, 0, 0, 0][:6])


@machines
def test_what_decoders_do_is_allowed(machine: Machine) -> None:
    for name in ("futex", "madvise", "munmap", "recvfrom", "sendto", "pread64", "exit_group", "set_robust_list"):
        assert decide(machine, name) is Action.ALLOW
    assert decide(machine, "mmap", 0, 4096, 0b011, 0x22) is Action.ALLOW
    assert decide(machine, "clone", 0x3D0F00) is Action.ALLOW  # what glibc's threads ask for
    assert decide(machine, "tgkill", PID, PID, 6) is Action.ALLOW  # abort()
    assert decide(machine, "newfstatat", 3, 0, 0, 0x1000) is Action.ALLOW


@machines
def test_what_only_an_intruder_asks_for_ends_the_process(machine: Machine) -> None:
    names = ("execve", "execveat", "socket", "connect", "bind", "ptrace", "process_vm_readv", "keyctl", "bpf", "mount")
    for name in (*names, "io_uring_setup", "memfd_create", "setuid", "unshare", "userfaultfd", "pidfd_getfd"):
        assert decide(machine, name) is Action.KILL
    assert decide(machine, "clone", 17) is Action.KILL  # SIGCHLD alone: fork
    assert decide(machine, "clone", 0x3D0F00 | 0x1000_0000) is Action.KILL  # a user namespace beside the thread
    assert decide(machine, "kill", 1, 9) is Action.KILL
    assert decide(machine, "kill", 0xFFFF_FFFF, 9) is Action.KILL  # everybody


@machines
def test_what_a_library_may_try_is_refused_quietly(machine: Machine) -> None:
    open_at = {"x86_64": 257, "aarch64": 56}  # not in the table: everything not named is refused
    number = next(open_at[name] for name, each in MACHINES.items() if each is machine)
    assert worker_filter(machine, PID).decide(machine.audit_arch, number, [0] * 6) is Action.DENY
    assert decide(machine, "mmap", 0, 4096, 0b111, 0x22) is Action.DENY
    assert decide(machine, "mmap", 0, 4096, 0b011, 0x21) is Action.DENY  # MAP_SHARED | MAP_ANONYMOUS
    assert decide(machine, "mprotect", 0, 4096, 0b101) is Action.DENY
    assert decide(machine, "fcntl", 3, 8, PID) is Action.DENY  # F_SETOWN
    assert decide(machine, "prctl", 22) is Action.DENY  # PR_SET_SECCOMP
    assert decide(machine, "prlimit64", 0, 7, 0x1000) is Action.DENY
    assert decide(machine, "prlimit64", 0, 7, 1 << 32) is Action.DENY
    assert decide(machine, "newfstatat", 3, 0, 0, 0) is Action.DENY


@machines
def test_unknown_calls_are_answered_as_an_old_kernel_would(machine: Machine) -> None:
    rules = worker_filter(machine, PID)
    assert decide(machine, "clone3") is Action.ABSENT
    assert rules.decide(machine.audit_arch, 460, [0] * 6) is Action.ABSENT
    assert rules.decide(0x4000_0003, 1, [0] * 6) is Action.KILL  # 32-bit calls
    if machine.foreign is not None:
        assert rules.decide(machine.audit_arch, machine.foreign | 1, [0] * 6) is Action.KILL


@given(
    st.sampled_from(list(MACHINES.values())),
    st.integers(0, 470),
    st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6),
)
def test_the_program_says_what_the_rules_say(machine: Machine, number: int, args: list[int]) -> None:
    rules = worker_filter(machine, PID)
    assert run(assemble(rules), machine.audit_arch, number, args) == rules.decide(machine.audit_arch, number, args)


@machines
def test_the_program_is_short(machine: Machine) -> None:
    assert len(assemble(worker_filter(machine, PID))) // 8 < 512
