"""Walls close for good, so every test of one closes it in a process of its own and hears what that found out."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

InChild = Callable[[str], Any]
PREAMBLE = """
import json, os, sys
answer_fd = os.dup(1)
def tell(value):
    os.write(answer_fd, json.dumps(value).encode())
"""
ROOT = str(Path(__file__).parents[3])


@pytest.fixture
def in_child() -> InChild:
    """Run code in a fresh interpreter; the value is what it hands to ``tell``."""

    def run(code: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(code)],
            check=True,
            capture_output=True,
            env={"PYTHONPATH": ROOT, "PATH": "/usr/bin:/bin"},
        )
        return json.loads(done.stdout)

    return run
