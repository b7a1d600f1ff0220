"""The parts of a system under chaos, as processes that are killed, frozen, thawed and started again on the same ports.

Decided here: how each is started and looked into from outside. Gateways write their logs to files, so that a full
sink is only another file.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.case_runner.procfs import Family

T = TypeVar("T")
DEADLINE_S = 300.0  # reached by a broken system alone
# 512 tokens: the load's pictures are above it and are made smaller.
CAP = str(512 * 32 * 32)
_PORTS = (12_000, 31_000)
_RANDOM = random.Random()  # whoever runs beside has other ports
_SAMPLE = re.compile(r"^vlmgw_(\w+?)(?:\{(.*)\})? (\S+)$")


def until(condition: Callable[[], T], what: str, deadline_s: float = DEADLINE_S) -> T:
    """The first true value of ``condition``. Raises TimeoutError naming what never came."""
    stop_at = time.monotonic() + deadline_s
    while not (value := condition()):
        if time.monotonic() > stop_at:
            raise TimeoutError(f"never came: {what}")
        time.sleep(0.02)
    return value


class Part:
    """One process, on a port that stays its own. ``signal`` to what it is now."""

    name = "part"

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.frozen = False

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} was never started"
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.is_running:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill -9."""
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.frozen = False

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)
        self.frozen = False


class Backend(Part):
    """A simulated engine."""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__()
        self.name = f"backend-{number}"
        self.port = _free_run(1)
        self._log = folder / f"{self.name}.log"

    def start(self) -> None:
        command = [
            sys.executable, "-m", "gateway.simulator", "--port", str(self.port), "--record-api", "--speed", "20",
            "--max-pixels", CAP, "--decode-tokens-per-s", "40",
        ]  # fmt: skip
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._answers, f"{self.name} at work")

    def _answers(self) -> bool:
        assert self.is_running, f"{self.name} ended at its start: {self._log.read_text()[-800:]}"
        return _status(f"http://127.0.0.1:{self.port}/health") == 200

    def running_requests(self) -> int:
        """What it works at now."""
        return int(_get(f"http://127.0.0.1:{self.port}/sim/state").json()["in_flight"])


class Origin(Part):
    """The server of remote pictures."""

    name = "origin"

    def __init__(self) -> None:
        super().__init__()
        self.port = 0

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.chaos.origin", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.process.stdout.close()


class GatewayPart(Part):
    """``vlm-gateway serve`` on fixed ports. ``preload``: further environment, of a faked clock for example."""

    def __init__(
        self,
        folder: Path,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        processes: int = 1,
        log: Path | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.port = _free_run(1)
        self.admin_port = _free_run(processes + 1)
        self.processes = processes
        self._arguments = arguments
        self._environment = environment
        self.log = log or folder / f"{name}.log"
        self.errors = folder / f"{name}.err"
        self.started_in_s = 0.0
        self.family = Family(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}"

    def start(self) -> None:
        """Start it and wait until it is ready; ``started_in_s`` is how long that took."""
        command = [
            sys.executable, "-m", "gateway", "serve", "--port", str(self.port), "--admin-port", str(self.admin_port),
            *self._arguments,
        ]  # fmt: skip
        if self.processes > 1:
            command += ["--processes", str(self.processes)]
        began_s = time.monotonic()
        with self.log.open("ab") as log, self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=errors, env={**os.environ, **self._environment}
            )
        self.family = Family(self.pid)
        until(lambda: self._ready_or_dead(), f"{self.name} ready")  # noqa: PLW0108 - reads as it is meant
        self.started_in_s = time.monotonic() - began_s

    def _ready_or_dead(self) -> bool:
        if not self.is_running:
            raise TimeoutError(f"{self.name} ended at its start: {self.said[-800:]}")
        return self.is_ready()

    def is_ready(self) -> bool:
        return _status(f"{self.admin}/readyz") == 200

    def is_live(self) -> bool:
        return _status(f"{self.admin}/livez") == 200

    @property
    def said(self) -> str:
        """Standard error so far."""
        return self.errors.read_text(encoding="utf-8", errors="replace") if self.errors.exists() else ""

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What was logged of one kind. A line that is not whole yet is left out."""
        return [line for line in read_lines(self.log) if line.get("event") == event]

    def workers(self) -> list[int]:
        """The living image workers."""
        return self.family.image_workers()

    def serving(self) -> list[int]:
        """The processes that serve: its children with ``--processes``, else itself."""
        if self.processes == 1:
            return [self.pid]
        return [pid for pid in self.family.members(with_zombies=False) if b"gateway.cli.sibling" in command_of(pid)]

    def samples(self) -> list[tuple[str, str, float]]:
        """Name (without prefix), labels as text, value. Empty where nobody answers."""
        try:
            text = _get(f"{self.admin}/metrics").text
        except httpx.HTTPError:
            return []
        found = (_SAMPLE.match(line) for line in text.splitlines())
        return [(match[1], match[2] or "", float(match[3])) for match in found if match]

    def metric(self, name: str, label: str = "") -> float:
        """The sum of a metric's samples whose labels hold ``label``."""
        return sum(value for found, labels, value in self.samples() if found == name and label in labels)

    def ask(self, method: str, path: str) -> int:
        """The status of an admin path."""
        return _CLIENT.request(method, f"{self.admin}{path}", timeout=DEADLINE_S).status_code

    def end(self) -> None:
        """Ask it to leave, then make it; nothing of it stays."""
        self.thaw()
        left = self.family.members()
        for _ in range(2):
            self.signal(signal.SIGTERM)
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=10)
            self.kill()
        for pid in left:
            if pid in self.family.members(with_zombies=False):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def read_lines(log: Path) -> list[dict[str, Any]]:
    """The JSON objects of a log; a file that is none has no lines."""
    if not log.is_file():
        return []
    found = []
    for line in log.read_bytes().splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, dict)]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# One for all, since making one costs; it keeps no connection, which a gateway would hold a descriptor for.
_CLIENT = httpx.Client(
    verify=False, trust_env=False, timeout=10, limits=httpx.Limits(max_keepalive_connections=0)
)  # fmt: skip


def _get(url: str) -> httpx.Response:
    return _CLIENT.get(url)


def _status(url: str) -> int:
    try:
        return _CLIENT.get(url, timeout=5).status_code
    except httpx.HTTPError:
        return 0


def _free_run(count: int) -> int:
    """The first of ``count`` neighbouring ports that are free.

    They lie below those that systems give out by themselves, so that nobody takes one while its holder is dead.
    """

    for _ in range(200):
        first = _RANDOM.randrange(*_PORTS)
        held: list[socket.socket] = []
        try:
            for number in range(count):
                made = socket.socket()
                held.append(made)
                made.bind(("127.0.0.1", first + number))
        except (OSError, OverflowError):
            continue
        else:
            return first
        finally:
            for each in held:
                each.close()
    raise OSError("no run of free ports")
