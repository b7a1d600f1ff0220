"""In processes of their own, since none of it can be taken back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_RESET_ON_FORK = 0x40000000  # linux/sched.h, as sched_getscheduler adds it


def told(code: str) -> list[str]:
    head = (
        "import os, subprocess, sys\nfrom gateway.media.priority import step_back, kept_waiting_s, take_short_turns\n"
    )
    command = [sys.executable, "-c", head + code]
    return subprocess.run(command, check=True, capture_output=True, text=True, start_new_session=True).stdout.split()


def test_a_worker_that_steps_back_is_nice_and_its_session_is_not() -> None:
    code = "before = os.nice(0); step_back(1); print(os.nice(0) - before, os.sched_getscheduler(0))\n"
    group = "print(open('/proc/self/autogroup').read() if os.path.exists('/proc/self/autogroup') else 'none')"
    nicer, policy, *words = told(code + group)
    assert (int(nicer), int(policy)) == (1, os.SCHED_BATCH)
    if words != ["none"]:
        assert words[-2:] == ["nice", "0"]


def test_the_loop_asks_for_short_turns_and_stays_what_it_was() -> None:
    code = """
before = os.nice(0), os.sched_getscheduler(0)
done = take_short_turns()
child = subprocess.run([sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"], capture_output=True)
print(done, os.nice(0) - before[0], os.sched_getscheduler(0), int(child.stdout), take_short_turns())
"""
    done, nicer, policy, childs_policy, again = told(code)
    assert nicer == "0"
    assert int(childs_policy) == os.SCHED_OTHER
    assert int(policy) == (os.SCHED_OTHER | _RESET_ON_FORK if done == "True" else os.SCHED_OTHER)
    assert again == "False"  # it has them


def test_short_turns_are_what_the_kernel_says_it_gives() -> None:
    sched = Path("/proc/self/sched")
    words = told(
        "take_short_turns(); print(open('/proc/self/sched').read())" if sched.exists() else "print('se.slice')"
    )
    at = words.index("se.slice") if "se.slice" in words else None
    if at is not None and len(words) > at + 2:
        assert int(words[at + 2]) == 100_000


def test_another_policy_is_left_alone() -> None:
    code = "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))\n"
    assert told(code + "print(take_short_turns(), os.sched_getscheduler(0))") == ["False", str(os.SCHED_BATCH)]


def test_how_long_a_process_was_kept_waiting_is_told_or_zero() -> None:
    [waited] = told("print(kept_waiting_s(os.getpid()))")
    assert float(waited) >= 0
    assert told("print(kept_waiting_s(2**30))") == ["0.0"]
