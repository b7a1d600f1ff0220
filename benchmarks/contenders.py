"""Real processes measured from outside: started, asked over one keep-alive connection, their CPU read from /proc.

CPU is what the kernel accounted to all threads of all processes of a contender (``schedstat``, nanoseconds), so that
what a gateway does in its workers and its admin thread counts as well.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_START_DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that listens on ``port`` and relays to the stub."""

    name: str
    port: int
    pid: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one request cost: medians over the rounds."""

    cpu_ms: float
    p50_ms: float

    def to_json(self) -> dict[str, float]:
        return {"cpu_ms": round(self.cpu_ms, 3), "p50_ms": round(self.p50_ms, 3)}


@contextmanager
def started(command: Sequence[str], **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, object]]]:
    """A process and the JSON line it prints when it listens."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **environment})
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{command[2:]} ended at once")
        yield process, json.loads(line)
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and end it when it does not within five seconds."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def module(name: str, *arguments: str) -> list[str]:
    """The command line of ``python -m name`` in this environment."""
    return [sys.executable, "-m", name, *arguments]


@contextmanager
def relay_and_gateway(serve_arguments: Sequence[str] = ()) -> Iterator[tuple[int, list[Contender]]]:
    """The stub's port, and a bare relay and a gateway in front of it."""
    with ExitStack() as stack:
        _, stub = stack.enter_context(started(module("benchmarks.stub")))
        backend = f"http://127.0.0.1:{stub['port']}"
        relay, at = stack.enter_context(started(module("benchmarks.relay", backend)))
        # The access log is written, as in service, and thrown away by the reader.
        log = stack.enter_context(tempfile.TemporaryFile())
        arguments = ("serve", "--backend", backend, "--port", "0", "--admin-port", "0", *serve_arguments)
        gateway, ready = stack.enter_context(
            started(module("gateway", *arguments), VLMGW_SERVER_SETTLE_S="0", VLMGW_SERVER_DRAIN_TIMEOUT_S="1")
        )
        assert gateway.stdout is not None
        drain = subprocess.Popen(["cat"], stdin=gateway.stdout, stdout=log)
        stack.callback(drain.kill)
        yield (
            int(str(stub["port"])),
            [
                Contender("relay", int(str(at["port"])), relay.pid, {}),
                Contender("gateway", int(str(ready["data_port"])), gateway.pid, {}),
            ],
        )


def family_of(pid: int) -> list[int]:
    """A process and all its descendants."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            todo += [int(child) for child in task.read_text().split()]
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds that the process and its living descendants have used."""
    total_ns = 0
    for one in family_of(pid):
        for schedstat in Path(f"/proc/{one}/task").glob("*/schedstat"):
            try:
                total_ns += int(schedstat.read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return total_ns / 1e9


class Asker:
    """One keep-alive connection to a contender."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender
        self._connection = http.client.HTTPConnection("127.0.0.1", contender.port, timeout=60)

    def renew(self) -> None:
        """Connect anew with the next request: servers close what was idle while the others had their turn."""
        self._connection.close()

    def ask(self, body: bytes) -> float:
        """Send one chat request; seconds until the answer was read. Raises RuntimeError unless it was 200."""
        headers = {"Content-Type": "application/json", **self._contender.headers}
        began_s = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        taken_s = time.perf_counter() - began_s
        if answer.status != http.client.OK:
            raise RuntimeError(f"{self._contender.name} answered {answer.status}: {text[:300]!r}")
        return taken_s


def measure(
    contenders: Sequence[Contender], body: bytes, *, rounds: int, per_round: int, warm_up: int, seed: int = 1
) -> dict[str, Cost]:
    """Ask all contenders in an order drawn anew each round; medians of CPU per request and of latency."""
    askers = {contender.name: Asker(contender) for contender in contenders}
    for asker in askers.values():
        for _ in range(warm_up):
            asker.ask(body)
    order = list(contenders)
    shuffle = random.Random(seed).shuffle
    cpu_ms: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    latency_ms: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        shuffle(order)
        for contender in order:
            askers[contender.name].renew()
            before_s = cpu_s(contender.pid)
            latency_ms[contender.name] += [1000 * askers[contender.name].ask(body) for _ in range(per_round)]
            cpu_ms[contender.name].append(1000 * (cpu_s(contender.pid) - before_s) / per_round)
    return {name: Cost(statistics.median(cpu_ms[name]), statistics.median(latency_ms[name])) for name in cpu_ms}


def wait_listening(port: int, path: str = "/health/liveliness") -> None:
    """Until the contender answers at ``path``."""
    deadline = time.monotonic() + _START_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", path)
            if connection.getresponse().status == http.client.OK:
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"nothing answers on port {port}")
