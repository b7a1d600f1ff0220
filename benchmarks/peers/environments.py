"""The peers' own environments: made on first use under ``.bench/NAME``, in the versions of ``versions.toml``.

A peer that cannot be installed here (no registry, no wheel for this machine) is told with pip's last line, and the
benchmark goes on without it.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent / ".bench"
_PINNED = Path(__file__).parent / "versions.toml"
_INSTALL_LIMIT_S = 900


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer is installed; ``missing`` says why it is not."""

    requirement: str
    python: Path
    command: Path
    missing: str = ""


def environment(name: str, root: Path = ROOT) -> Environment:
    """The environment of a peer, making it when need be. Raises KeyError for a name that is not pinned."""
    pinned = _pinned()[name]
    folder = root / name
    python, command = folder / "bin" / "python", folder / "bin" / pinned["command"]
    requirement = pinned["requirement"]
    if not command.exists():
        print(f"installing {requirement} into {folder} (once) ...", file=sys.stderr)
        missing = _install(folder, python, requirement)
        if missing or not command.exists():
            return Environment(requirement, python, command, missing or f"{requirement} brings no {command.name}")
    return Environment(requirement, python, command)


def _pinned() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(_PINNED.read_text(encoding="utf-8"))


def _install(folder: Path, python: Path, requirement: str) -> str:
    """Why it failed; empty if it did not."""
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement]
    try:
        for command in ([sys.executable, "-m", "venv", str(folder)], pip):
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_INSTALL_LIMIT_S)
            if done.returncode != 0:
                return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return ""
