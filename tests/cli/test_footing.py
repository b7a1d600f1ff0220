"""Closed standard streams, process 1, and the orphans that it gets."""

from __future__ import annotations

import subprocess
import sys

# Closed as a shell's >&- does it; then a file is opened, and something is printed.
_CLOSED = """
import os
from gateway.cli.footing import stand
stand()
other = os.open(os.devnull, os.O_RDONLY)
print("to nobody")
raise SystemExit(0 if other > 2 and all(os.readlink(f"/proc/self/fd/{fd}") == os.devnull for fd in range(3)) else 1)
"""
# A subreaper gets orphans as process 1 does, and needs no namespace of its own for it.
_ORPHANS = """
import ctypes, os, subprocess, time
from gateway.cli.footing import reap
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
reap(())
subprocess.run(["sh", "-c", "sleep 0 & sleep 0 &"], check=True)
own = subprocess.Popen(["sleep", "60"])
children = f"/proc/self/task/{os.getpid()}/children"
for _ in range(3000):
    reap({own.pid})
    if open(children).read().split() == [str(own.pid)]:
        break
    time.sleep(0.01)
else:
    raise SystemExit(1)
own.kill()
os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
reap({own.pid})
raise SystemExit(0 if own.wait() == -9 else 2)
"""
_FIRST = """
import os, signal
from gateway.cli.footing import stand
os.getpid = lambda: 1
kill, own = os.kill, int(os.readlink("/proc/self"))
stand()
kill(own, signal.SIGTERM)
"""


def _code(program: str, *before: str) -> int:
    return subprocess.run([*before, sys.executable, "-c", program], check=False).returncode


def test_a_closed_stream_is_nobodys_and_no_sockets() -> None:
    assert _code(_CLOSED, "sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh") == 0


def test_orphans_are_waited_for_and_our_own_left_to_who_began_them() -> None:
    assert _code(_ORPHANS) == 0


def test_process_1_can_be_ended_while_it_starts() -> None:
    assert _code(_FIRST) == 128 + 15
