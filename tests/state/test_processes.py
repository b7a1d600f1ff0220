"""Four replicas in four processes, as fast as they can, on one limit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.state.holder import COUNTER, LIMIT
from tests.state.redis_server import running

ROOT = Path(__file__).parents[2]
REPLICAS, ROUNDS = 4, 60


@pytest.mark.slow
def test_open_reservations_never_exceed_the_limit_across_processes() -> None:
    with running() as server:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.state.holder", server.unix_url, f"r{number}", str(ROUNDS)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for number in range(REPLICAS)
        ]  # fmt: skip
        try:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            for process in processes:  # all at once
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            said = [process.communicate(timeout=60)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        tallies = [json.loads(text) for text in said]
        assert sum(tally["granted"] + tally["denied"] for tally in tallies) == REPLICAS * ROUNDS * 8
        assert all(tally["granted"] > 0 for tally in tallies)
        assert sum(tally["denied"] for tally in tallies) > 0
        assert LIMIT // 2 < max(tally["highest"] for tally in tallies) <= LIMIT
        # All has ended: all is zero, and the registry is empty.
        assert server.ask("GET", COUNTER) == b"0\r\n"
        assert server.keys() == [COUNTER]
