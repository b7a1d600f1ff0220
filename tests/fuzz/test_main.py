from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_one_input_can_be_sent_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--only", "4711", "--seed", "3"],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    told = json.loads(done.stdout)
    assert (told["fuzz"], told["seed"]) == ("ok", 3)
    assert told["accepted"] + sum(told["refused"].values()) == 1
