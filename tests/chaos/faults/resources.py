"""What runs out or jumps: descriptors, disk, log sinks, memory of workers, and the wall clock."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

from tests.chaos.invariants import Excuse
from tests.chaos.load import Load, Target
from tests.chaos.parts import GatewayPart, read_lines, until
from tests.chaos.run import Fault, Strike

_WORKER = Excuse(frozenset({"image_worker_lost", "pool_saturated", "image_undecodable"}))
_NO_DESCRIPTORS = Excuse(frozenset({"backend_unreachable", "no_backend", "source_failed", "image_worker_lost"}))
_PAGE_BYTES = 4096


def _limit(pid: int, which: int, soft: int) -> tuple[int, int]:
    """Lower a running process's limit; returns what it was."""
    before = resource.prlimit(pid, which)
    resource.prlimit(pid, which, (soft, before[1]))
    return before


def descriptors_gone(strike: Strike) -> None:
    gateway = strike.fleet.gateway
    taken = max(int(each.name) for each in Path(f"/proc/{gateway.pid}/fd").iterdir())
    before = _limit(gateway.pid, resource.RLIMIT_NOFILE, taken + 1)
    try:
        workers = gateway.workers()
        strike.answers(8)
        with suppress(ProcessLookupError):
            os.kill(workers[0], signal.SIGKILL)
        strike.answers(8)
    finally:
        resource.prlimit(gateway.pid, resource.RLIMIT_NOFILE, before)


def disk_full(strike: Strike) -> None:
    """No file grows any more: neither the log nor the shared memory of a new worker, which one of them needs now."""
    gateway = strike.fleet.gateway
    before = _limit(gateway.pid, resource.RLIMIT_FSIZE, gateway.log.stat().st_size + 100)
    try:
        strike.answers(10)
        with suppress(ProcessLookupError):
            os.kill(gateway.workers()[0], signal.SIGKILL)
        strike.answers(10)
    finally:
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, before)
    until(lambda: gateway.metric("log_lines_dropped_total"), "lines that were not written, counted")
    length = len(read_lines(gateway.log))
    strike.answers(6)
    until(lambda: len(read_lines(gateway.log)) > length, "lines again")
    strike.notes.append(f"{gateway.metric('log_lines_dropped_total'):g} lines were not written")


def memory_short(strike: Strike) -> None:
    """Workers get no byte more than they have."""
    for worker in strike.fleet.gateway.workers():
        with suppress(OSError, IndexError):
            pages = int(Path(f"/proc/{worker}/statm").read_text().split()[0])
            _limit(worker, resource.RLIMIT_AS, pages * _PAGE_BYTES)
    strike.answers(20)


def _served_with(strike: Strike, name: str, log: Path) -> GatewayPart:
    """Another gateway with this log answers everything; it is left running."""
    fleet = strike.fleet
    gateway = fleet.new_gateway(name)
    gateway.log = log
    gateway.start()
    load = Load(Target([gateway.url], fleet.target.origin), name, strike.seed, lanes=3)
    running = fleet.stage.begin(load.run())
    until(lambda: len(load.answers) >= 30, "answers of a gateway without a log")
    load.stop()
    running.result()
    strike.load.answers.extend(load.answers)
    return gateway


def _leaves(gateway: GatewayPart) -> None:
    gateway.signal(signal.SIGTERM)
    assert gateway.process is not None
    code = gateway.process.wait(30)
    assert code == 0, f"{gateway.name} left with {code}: {gateway.said[-800:]}"
    assert "Traceback" not in gateway.said, gateway.said[-1500:]


def sink_full(strike: Strike) -> None:
    """Not one line can be written, from the first to the last."""
    gateway = _served_with(strike, "without-a-disk", Path("/dev/full"))
    try:
        assert gateway.metric("log_lines_dropped_total") > 0, "nothing was counted"
        _leaves(gateway)
    finally:
        gateway.end()


def sink_blocked(strike: Strike) -> None:
    """Whoever should read the log does not."""
    pipe = strike.fleet.folder / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    gateway = _served_with(strike, "without-a-reader", pipe)
    try:
        _leaves(gateway)
    finally:
        os.close(reading)
        gateway.end()


FAULTS = (
    Fault("descriptors-gone", descriptors_gone, excuse=_NO_DESCRIPTORS, is_short=True),
    Fault("disk-full", disk_full, is_short=True),
    Fault("log-sink-full", sink_full),
    Fault("log-sink-blocked", sink_blocked),
    Fault("workers-short-of-memory", memory_short, excuse=_WORKER, is_short=True),
)
