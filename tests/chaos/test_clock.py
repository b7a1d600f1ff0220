"""A process lives by the wall clock it is given, and waits by the machine's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.chaos.clock import WallClock

LOOK = """
import sys, time
for line in sys.stdin:
    began = time.monotonic()
    time.sleep(0.01)
    print(time.time(), time.monotonic() - began >= 0.01, flush=True)
"""


def test_it_jumps_while_a_process_runs(tmp_path: Path) -> None:
    clock = WallClock(tmp_path, "one")
    command = [sys.executable, "-c", LOOK]
    environment = {**os.environ, **clock.environment}
    with subprocess.Popen(
        command, text=True, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for offset_s in (0, 86_400, -86_400, 0.5):
            clock.jump(offset_s)
            process.stdin.write("look\n")
            process.stdin.flush()
            told, slept = process.stdout.readline().split()
            assert slept == "True"
            assert abs(float(told) - time.time() - offset_s) < 60
        process.stdin.close()
    script = clock.wrapped(sys.executable, "python-of-tomorrow")
    clock.jump(86_400)
    told = subprocess.run(
        [script, "-c", "import time; print(time.time())"], check=True, capture_output=True, text=True
    ).stdout
    assert float(told) - time.time() > 80_000
