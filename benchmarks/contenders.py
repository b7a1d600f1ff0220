"""Real processes measured from outside: started, asked over one keep-alive connection, their CPU read from /proc.

CPU is what the kernel accounted to all threads of all processes of a contender (``schedstat``, nanoseconds), so that
what a gateway does in its workers and its admin thread counts as well.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import socket
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
class Site:
    """The stub backend and what stands in front of it."""

    stub_port: int
    stub_pid: int
    contenders: list[Contender]


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
        if process.stdout is not None:
            process.stdout.close()


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
def relay_and_gateway(serve_arguments: Sequence[str] = ()) -> Iterator[Site]:
    """A bare relay and a gateway in front of one stub."""
    with ExitStack() as stack:
        stub_process, stub = stack.enter_context(started(module("benchmarks.stub")))
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
        contenders = [
            Contender("relay", int(str(at["port"])), relay.pid, {}),
            Contender("gateway", int(str(ready["data_port"])), gateway.pid, {}),
        ]
        yield Site(int(str(stub["port"])), stub_process.pid, contenders)


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


def pin(pids: Sequence[int], cpu: int) -> None:
    """Keep all threads of these processes and of their descendants on one CPU."""
    for pid in pids:
        for one in family_of(pid):
            for task in Path(f"/proc/{one}/task").iterdir():
                os.sched_setaffinity(int(task.name), {cpu})


def pin_apart(stub_pid: int, contenders: Sequence[Contender]) -> bool:
    """The asker and the stub on one CPU, all contenders on another, so that neither empties the other's caches.

    ``False`` on a machine with a single CPU, where nothing is pinned.
    """
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        return False
    pin((os.getpid(), stub_pid), cpus[0])
    pin([contender.pid for contender in contenders], cpus[-1])
    return True


class Asker:
    """One keep-alive connection to a contender: a bare socket, which costs the machine least."""

    def __init__(self, contender: Contender) -> None:
        self._contender = contender
        self._socket: socket.socket | None = None
        self._request = b""
        self._of = b""

    def renew(self) -> None:
        """Connect anew with the next request: servers close what was idle while the others had their turn."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, body: bytes) -> float:
        """Send one chat request; seconds until the answer was read. Raises RuntimeError unless it was 200."""
        if self._of is not body:
            headers = {"Host": "bench", "Content-Type": "application/json", **self._contender.headers}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = f"POST /v1/chat/completions HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
            self._of, self._request = body, head.encode() + body
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._contender.port), timeout=60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began_s = time.perf_counter()
        self._socket.sendall(self._request)
        answer = self._answer(self._socket)
        taken_s = time.perf_counter() - began_s
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"{self._contender.name} answered {answer[:400]!r}")
        return taken_s

    def _answer(self, connection: socket.socket) -> bytes:
        received = bytearray()
        need = -1
        while need < 0 or len(received) < need:
            piece = connection.recv(262144)
            if not piece:
                raise RuntimeError(f"{self._contender.name} closed the connection after {bytes(received[:200])!r}")
            received += piece
            end = received.find(b"\r\n\r\n")
            if need < 0 <= end:
                length = re.search(rb"\r\ncontent-length: *(\d+)", received[: end + 2], re.IGNORECASE)
                if length is None:
                    raise RuntimeError(f"{self._contender.name} gave no Content-Length: {bytes(received[:400])!r}")
                need = end + 4 + int(length[1])
        return bytes(received)


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
