"""One of several processes that are one gateway: ``serve`` as its supervisor starts it.

Decided here: what the supervisor tells a process and hears from it, and that it lives no longer than the supervisor.
Not decided here: how many there are and when one is started again (``supervisor``).
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import typer

from gateway.app import Listening
from gateway.cli.serve import run, settings_given
from gateway.config.sources import load_settings
from gateway.media.confine.kernel import PR_SET_PDEATHSIG, prctl

COMMAND = (sys.executable, "-m", "gateway.cli.sibling")


@dataclass(frozen=True, slots=True)
class Part:
    """What one process is told on its standard input, as JSON. ``flags`` name its own ports; ``key`` is everybody's."""

    flags: dict[str, object]
    config: str | None
    key: bytes
    supervisor_pid: int
    report_fd: int

    def written(self) -> bytes:
        return msgspec.json.encode(self)


@dataclass(frozen=True, slots=True)
class Report:
    """What a process tells once requests are served."""

    admin_port: int


def follow(supervisor_pid: int) -> None:
    """End when the supervisor does."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor_pid:  # it died before the line above
        os._exit(1)


def report(fd: int, listening: Listening) -> None:
    """Tell the supervisor, once."""
    os.write(fd, msgspec.json.encode(Report(listening.admin)))
    os.close(fd)


def main() -> int:
    """Serve until told to leave; returns the exit code."""
    part = msgspec.json.decode(sys.stdin.buffer.read(), type=Part)
    follow(part.supervisor_pid)
    os.set_inheritable(part.report_fd, False)  # an image worker that had it would keep the supervisor waiting
    config = None if part.config is None else Path(part.config)
    try:
        settings = settings_given(config, part.flags)
        reread = partial(load_settings, config, flags=part.flags)
        return run(settings, reread, config, key=part.key, started=partial(report, part.report_fd))
    except typer.Exit as left:
        return left.exit_code


if __name__ == "__main__":
    sys.exit(main())
