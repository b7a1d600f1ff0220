"""The product as its users run it: a gateway process on free ports, with simulator processes behind it.

Decided here: starting, looking in from outside (log, admin port, /proc), ending. Nothing waits by sleeping
for a guessed time: ``until`` polls a condition up to a deadline that only a broken program reaches.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from tests.simulator.process import SimulatorProcess

DEADLINE_S = 120.0
# For a gateway that shall not take a frozen engine for a dead one.
PATIENT_PROBES = {"VLMGW_UPSTREAM_PROBE_TIMEOUT_S": "100"}
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
# Probes come quickly, and nobody waits for load balancers.
_ENVIRONMENT = {
    "VLMGW_SERVER_SETTLE_S": "0",
    "VLMGW_SERVER_DRAIN_TIMEOUT_S": "20",
    "VLMGW_UPSTREAM_PROBE_INTERVAL_S": "0.2",
    # Who starts it knows its engines from then on, however long they take on a busy machine to say what they are.
    "VLMGW_UPSTREAM_DISCOVERY_TIMEOUT_S": "20",
    # Who counts workers, or waits for a lost one's successor, means those at work.
    "VLMGW_MEDIA_SPARE_WORKERS": "0",
}

T = TypeVar("T")


def until(condition: Callable[[], T], what: str, deadline_s: float = DEADLINE_S) -> T:
    """The first true value of ``condition``. Raises AssertionError naming what never came."""
    stop_at = time.monotonic() + deadline_s
    while not (value := condition()):
        assert time.monotonic() < stop_at, f"never came: {what}"
        time.sleep(0.01)
    return value


class Gateway:
    """``vlm-gateway serve`` on ports that it chose."""

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        socket: Path | None = None,
        patience_s: float = DEADLINE_S,
    ) -> None:
        """``socket``: where it answers without TLS, if its port does not; ``patience_s`` is for its start."""
        self._arguments = arguments
        self._patience_s = patience_s
        self._transport = None if socket is None else httpx.HTTPTransport(uds=str(socket))
        self._environment = {**os.environ, **_ENVIRONMENT, **(environment or {})}
        self._lines: list[dict[str, Any]] = []
        self._errors: list[str] = []
        self._came = threading.Condition()
        self._readers: list[threading.Thread] = []
        self._said_all = False
        self.url = self.admin = ""

    def __enter__(self) -> Gateway:
        command = [sys.executable, "-m", "gateway", "serve", "--port", "0", "--admin-port", "0", *self._arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment
        )
        for read in (self._read_lines, self._read_errors):
            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            self._readers.append(thread)
        try:
            started = self.line(lambda line: line.get("event") == "started", "the gateway's start")
            self.url = f"http://127.0.0.1:{started['data_port']}"
            self.admin = f"http://127.0.0.1:{started['admin_port']}"
            until(lambda: self._status(f"{self.url}/health") == 200, "a ready gateway", self._patience_s)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            with self._came:
                self._lines.append(json.loads(text))
                self._came.notify_all()
        with self._came:
            self._said_all = True
            self._came.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    @property
    def said(self) -> str:
        """Standard error so far."""
        return "".join(self._errors)

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self, wanted: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """The first line of the log that is wanted, waited for."""

        def found() -> dict[str, Any] | None:
            return next((line for line in self._lines if wanted(line)), None)

        with self._came:
            self._came.wait_for(lambda: found() is not None or self._said_all, timeout=self._patience_s)
        line = found()
        assert line is not None, f"never logged: {what}; exit code {self.process.poll()}; {self.said[-500:]}"
        return line

    def lines(self, event: str) -> list[dict[str, Any]]:
        """What was logged of one kind so far."""
        with self._came:
            return [line for line in self._lines if line.get("event") == event]

    def access_line(self, request_id: str) -> dict[str, Any]:
        """The access line of one exchange."""
        return self.line(lambda line: line.get("request_id") == request_id, f"the access line of {request_id}")

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of ``vlmgw_<name>`` that carry these labels."""
        text = httpx.get(f"{self.admin}/metrics", trust_env=False, timeout=DEADLINE_S).text
        total = 0.0
        for line in text.splitlines():
            sample = _SAMPLE.match(line)
            if (
                sample
                and sample[1] == f"vlmgw_{name}"
                and labels.items() <= dict(_LABEL.findall(sample[2] or "")).items()
            ):
                total += float(sample[3])
        return total

    def workers(self) -> list[int]:
        """The living image workers, orphans included: each leads a group of its own and is told its parent's id."""
        told = f'"parent_pid":{self.pid},'.encode()
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and told in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
        return sorted(found)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code of a gateway that was told to leave, once all that it said is read."""
        code = self.process.wait(timeout=DEADLINE_S)
        for thread in self._readers:
            thread.join(DEADLINE_S)
        return code

    def end(self) -> None:
        """End it and whatever is left of its workers."""
        for number in (signal.SIGTERM, signal.SIGTERM):
            if self.process.poll() is None:
                self.process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        for pid in (*self.workers(), *([self.pid] if self.process.poll() is None else ())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for thread in self._readers:
            thread.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _status(self, url: str) -> int:
        try:
            with httpx.Client(transport=self._transport, trust_env=False, timeout=30) as client:
                return client.get(url).status_code
        except httpx.TransportError:
            return 0


class Engine(SimulatorProcess):
    """A simulated engine that tells what reached it and acts out ordered faults."""

    def __init__(self, *flags: str) -> None:
        super().__init__("--record-api", *flags)

    def __enter__(self) -> Engine:
        super().__enter__()
        return self

    @property
    def name(self) -> str:
        """As the gateway calls it."""
        return self.url.removeprefix("http://")

    def requests(self) -> list[dict[str, Any]]:
        """What reached it since the last ``forget``."""
        found: list[dict[str, Any]] = self._get("/sim/requests")["requests"]
        return [request for request in found if request["path"].startswith("/v1/")]

    def state(self) -> dict[str, Any]:
        """What runs and waits now."""
        return self._get("/sim/state")

    def fault(self, kind: str, **fields: object) -> None:
        """What the next generating request meets."""
        faults = [{"kind": kind, **fields}]
        httpx.post(f"{self.url}/sim/faults", json={"faults": faults}, trust_env=False, timeout=30).raise_for_status()

    def forget(self) -> None:
        """Empty the records and take back faults that nobody met."""
        httpx.delete(f"{self.url}/sim/requests", trust_env=False, timeout=30).raise_for_status()
        httpx.post(f"{self.url}/sim/faults", json={"faults": []}, trust_env=False, timeout=30).raise_for_status()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Nothing comes out of it; what is sent to it waits in the kernel. For a gateway whose probes are patient."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill -9, as a crash of the engine does."""
        self.process.kill()
        self.process.wait()

    def _get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}{path}", trust_env=False, timeout=DEADLINE_S).json()
        return found


def write_policies(folder: Path, **files: str) -> Path:
    """``name="text"`` becomes ``name.yaml``, whole from its first moment; the folder is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f".{name}.new").write_text(text, encoding="utf-8")
        (folder / f".{name}.new").rename(folder / f"{name}.yaml")
    return folder
