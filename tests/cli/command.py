"""Commands as their users run them: in this process where they only compute, as a process where they start others."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.cli.commands import application
from tests.simulator import drawn

COMMANDS = {
    "serve", "demo", "check", "doctor", "explain", "estimate", "process", "hash-key", "engine-sim", "simulate",
    "adaptive", "logs", "top", "version",
}  # fmt: skip
_APP = application()
# Nobody listens on the discard port here; a connection is refused at once.
NOBODY = "http://127.0.0.1:9"


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left: its exit code, what it printed, what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: str, stdin: str | None = None) -> Ran:
    """In this process."""
    result = CliRunner().invoke(_APP, list(arguments), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def start(*arguments: str) -> Ran:
    """As a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *arguments], check=False, capture_output=True, text=True, timeout=100
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def draw_pictures(folder: Path) -> Path:
    """A photograph above a small cap, one that lies on its side, a conforming drawing, and a broken file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broken.png").write_bytes(drawn.png(64, 64)[:60])
    (folder / "drawing.png").write_bytes(drawn.png(320, 256))
    (folder / "photograph.jpg").write_bytes(drawn.photograph(2000, 1500))
    (folder / "turned.jpg").write_bytes(drawn.turned_jpeg(640, 480, 6))
    return folder
