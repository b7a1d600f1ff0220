"""A stream of 200 events: what each event takes longer than straight from the stub, and CPU per stream, beside a relay.

Every event carries the time at which the stub sent it (one monotonic clock for all processes of a machine).
"""

from __future__ import annotations

import re
import socket
import statistics
import time
from typing import cast

from benchmarks.contenders import Contender, cpu_s, pin_apart, relay_and_gateway
from benchmarks.stub import MODEL
from benchmarks.timing import Options, machine_facts

EVENTS = 200
_SENT = re.compile(rb'"sent_ns":(\d+)')
_BODY = b'{"model":"%s","stream":true,"messages":[{"role":"user","content":"hi"}]}' % MODEL.encode()
_HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: b\r\nContent-Type: application/json\r\nx-bench-events: {}\r\n"


def _stream(port: int) -> list[float]:
    """Milliseconds that each event took from the stub's write to here."""
    head = (_HEAD.format(EVENTS) + f"Content-Length: {len(_BODY)}\r\n\r\n").encode()
    late_ms: list[float] = []
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head + _BODY)
        while not received.endswith(b"0\r\n\r\n"):
            piece = connection.recv(65536)
            now_ns = time.monotonic_ns()
            if not piece:
                raise RuntimeError(f"closed after {received[:300]!r}")
            late_ms += [(now_ns - int(sent)) / 1e6 for sent in _SENT.findall(piece)]
            received = received[-16:] + piece
    return late_ms


def run(options: Options) -> dict[str, object]:
    """Per contender: median and 99th percentile of an event's time, CPU of a stream; ratios of gateway to relay."""
    rounds = options.rounds or 10
    with relay_and_gateway() as site:
        direct = Contender("direct", site.stub_port, site.stub_pid, {})
        pinned = pin_apart(site.stub_pid, site.contenders)
        late: dict[str, list[float]] = {"direct": [], "relay": [], "gateway": []}
        cpu: dict[str, list[float]] = {"direct": [], "relay": [], "gateway": []}
        for turn in range(rounds + 2):
            for contender in (direct, *site.contenders):
                before_s = cpu_s(contender.pid)
                found = [_stream(contender.port) for _ in range(5)]
                if turn >= 2:
                    late[contender.name] += [each for one in found for each in one]
                    cpu[contender.name].append(1000 * (cpu_s(contender.pid) - before_s) / 5)
    costs = {
        name: {
            "event_p50_ms": round(statistics.median(late[name]), 4),
            "event_p99_ms": round(statistics.quantiles(late[name], n=100)[98], 4),
            "cpu_ms": round(statistics.median(cpu[name]), 3),
        }
        for name in late
    }
    relay, gateway, base = costs["relay"], costs["gateway"], costs["direct"]["event_p50_ms"]
    added = (gateway["event_p50_ms"] - base) / max(relay["event_p50_ms"] - base, 1e-6)
    ratios = {"added_time_to_relay": round(added, 2), "cpu_to_relay": round(gateway["cpu_ms"] / relay["cpu_ms"], 2)}
    return {"stream": ratios, "events": EVENTS, "pinned": pinned, "costs": costs, "machine": machine_facts()}


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    costs = cast("dict[str, dict[str, float]]", report["costs"])
    lines = [
        f"{name:8} " + "  ".join(f"{key} {value:9.4f}" for key, value in cost.items()) for name, cost in costs.items()
    ]
    return [*lines, *(f"{key}: {value}" for key, value in cast("dict[str, float]", report["stream"]).items())]
