"""What a connection costs in memory while nothing comes over it, in the gateway and in a bare relay, in one run.

Some 10,000 connections to each, in three kinds: *asked* has had one text request answered and is kept alive, as the
pools of client libraries and load balancers do; *sent_much* the same with a request of 200 KB; *silent* was opened and
has never sent a byte. Each kind has processes of its own, since memory once given back to the allocator would hide the
cost of the next kind. A few hundred connections come first and go again, so that what a process needs once for any
number is there before. Resident memory is that of the process that holds the connections: image workers hold none.
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.contenders import Asker, Contender, Site, relay_and_gateway
from benchmarks.stub import MODEL
from benchmarks.timing import Options, machine_facts

CONNECTIONS = 10_000
_WARM_UP = 300
# Memory is read when it has held still for so long.
_STILL_S, _STILL_BYTES, _PATIENCE_S = 1.0, 256 * 1024, 30.0
_SHORT = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "Are you there?"}]}).encode()
_LONG = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "word " * 40_000}]}).encode()

# Connects, does what its kind does, and leaves the connection open; what it returns closes it.
_Open = Callable[[Contender], Callable[[], None]]


def run(options: Options) -> dict[str, object]:
    """``idle_connection_bytes`` is the gateway's for *asked*; ``options.rounds`` is the number of connections."""
    count = options.rounds or CONNECTIONS
    kinds = {}
    for kind, open_one in _KINDS.items():
        with _site() as site:
            kinds[kind] = {each.name: _bytes_each(each, open_one, count) for each in site.contenders}
    return {
        "idle_connection_bytes": kinds["asked"]["gateway"],
        "idle_connection_bytes_relay": kinds["asked"]["relay"],
        "connections": count,
        "kinds": kinds,
        "machine": machine_facts(),
    }


def table(report: dict[str, object]) -> list[str]:
    """Lines for people."""
    kinds = report["kinds"]
    assert isinstance(kinds, dict)
    head = f"bytes of memory for each of {report['connections']} idle connections"
    rows = (f"{kind:10} {of['gateway']:9,} {of['relay']:9,}" for kind, of in kinds.items())
    return [head, f"{'':10} {'gateway':>9} {'relay':>9}", *rows]


@contextmanager
def _site() -> Iterator[Site]:
    """A relay and a gateway that close no connection for its age while they are counted."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "gateway.yaml"
        config.write_text("server: {keepalive_timeout_s: 3600}\n", encoding="utf-8")
        with relay_and_gateway(("--config", str(config), "--pool", "1")) as site:
            yield site


def _bytes_each(contender: Contender, open_one: _Open, count: int) -> int:
    with ExitStack() as first:
        for _ in range(_WARM_UP):
            first.callback(open_one(contender))
    before = _resident_when_still(contender.pid)
    with ExitStack() as kept:
        for _ in range(count):
            kept.callback(open_one(contender))
        return (_resident_when_still(contender.pid) - before) // count


def _asked(contender: Contender, body: bytes = _SHORT) -> Callable[[], None]:
    asker = Asker(contender)
    asker.ask(body)
    return asker.renew


def _sent_much(contender: Contender) -> Callable[[], None]:
    return _asked(contender, _LONG)


def _silent(contender: Contender) -> Callable[[], None]:
    return socket.create_connection(("127.0.0.1", contender.port), timeout=60).close


_KINDS: dict[str, _Open] = {"asked": _asked, "sent_much": _sent_much, "silent": _silent}


def _resident_when_still(pid: int) -> int:
    """Resident bytes once they no longer move: connections are accepted a moment after they were opened."""
    deadline = time.monotonic() + _PATIENCE_S
    seen = _resident_bytes(pid)
    while time.monotonic() < deadline:
        time.sleep(_STILL_S)
        before, seen = seen, _resident_bytes(pid)
        if abs(seen - before) <= _STILL_BYTES:
            break
    return seen


def _resident_bytes(pid: int) -> int:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
