"""The pool's worker processes as a crew: as many as configured, each with its state, replaced when lost, grown or old.

Decided here: when a process is started, replaced and let go. Not decided here: what a worker does next and what its
loss means for its job (``pool``, told through three calls). Spare workers stand ready beside those that have jobs:
libraries take a second to load, far longer where other programs want all CPUs, and whoever lost a worker must not wait
for that. A replacement for a grown or old worker starts before the old one leaves; a worker that dies before it is
ready is tried again after a growing pause.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from gateway.errors import GatewayBug
from gateway.media.confine import BoxReport
from gateway.media.job import Job
from gateway.media.messages import Answer, Ready, Report, StartFailed
from gateway.media.process import WorkerProcess
from gateway.media.settings import PoolSettings
from gateway.media.shm import Slab

Reason = Literal["crash", "forbidden", "deadline", "memory", "age", "start", "stop"]

_MAX_START_PAUSE_S = 30.0
_LEAVE_WITHIN_S = 2.0
# What an idle worker may compute between two looks: closing threads, at most.
_IDLE_CPU_S = 0.25


class PoolCannotStart(Exception):
    """No worker became ready; the text tells the operator why."""


@dataclass(slots=True, eq=False)
class Worker:
    """What is known of a process. ``doom`` is why it is being ended; ``retiring`` that a fresh one is coming."""

    process: WorkerProcess
    ready: bool = False
    job: Job | None = None
    jobs_done: int = 0
    rss_bytes: int = 0
    start_bytes: int = 0
    largest_job_bytes: int = 0
    idle_cpu_s: float | None = None
    retiring: bool = False
    doom: Reason | None = None
    timer: asyncio.TimerHandle | None = None
    kept_waiting_s: float = 0.0  # for a CPU, when it was given its job

    @property
    def idle(self) -> bool:
        return self.ready and self.job is None and self.doom is None

    @property
    def own_bytes(self) -> int:
        """What it may keep: its libraries, and the memory of the largest job so far."""
        return self.start_bytes + self.largest_job_bytes

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Employer(Protocol):
    """Who gives work to the crew."""

    def reported(self, worker: Worker, answer: Report) -> None: ...
    def lost(self, worker: Worker, reason: Reason) -> None:
        """The worker is dead and reaped; it reads nothing any more."""
        ...

    def changed(self) -> None:
        """A worker may have become free."""
        ...


class Crew:
    """The processes (``process.Listener``). ``restarts`` counts why workers were replaced."""

    def __init__(self, settings: PoolSettings, slab: Slab, command: Sequence[str], employer: Employer) -> None:
        self._settings = settings
        self._slab = slab
        self._command = command
        self._employer = employer
        self._workers: dict[WorkerProcess, Worker] = {}
        self._width = settings.workers  # how many shall stand; spares come once these are ready
        self.restarts: Counter[str] = Counter()
        self._start_failures = 0
        self._start_failure = "no worker answered in time"
        self._restart: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._stopping = False
        self._fingerprint: str | None = None
        self.box = BoxReport()  # what stands around the worker that became ready last

    @property
    def fingerprint(self) -> str:
        """What every worker said of its codecs. Raises GatewayBug before the first was ready."""
        if self._fingerprint is None:
            raise GatewayBug(detail="the image pool has not started")
        return self._fingerprint

    @property
    def workers(self) -> Sequence[Worker]:
        return tuple(self._workers.values())

    @property
    def alive(self) -> bool:
        return any(worker.ready and worker.doom is None for worker in self._workers.values())

    def free_worker(self) -> Worker | None:
        """An idle worker while fewer than ``workers`` are at work; a grown one only while its replacement is not there.

        Of several the one that stands longest, so that spares stay small.
        """
        if sum(worker.job is not None for worker in self._workers.values()) >= self._settings.workers:
            return None
        idle = (worker for worker in self._workers.values() if worker.idle)
        return min(idle, key=lambda worker: worker.retiring, default=None)

    async def start(self) -> None:
        """Start all at once and wait until each is ready or lost; spares come later and are not waited for.

        Raises PoolCannotStart when none is ready.
        """
        self._spawn_missing()
        while any(not worker.ready for worker in self._workers.values()):
            self._changed.clear()
            await self._changed.wait()
        if not self.alive:
            await self.stop()
            raise PoolCannotStart(self._start_failure)
        self._width += self._settings.spare_workers
        self._restore_width()

    async def stop(self) -> None:
        """End every worker and reap it. None has anything to put in order, and a drain shall not wait for it."""
        self._stopping = True
        if self._restart is not None:
            self._restart.cancel()
        for worker in self.workers:
            self.end(worker, "stop")
        while self._workers:
            self._changed.clear()
            await self._changed.wait()

    def look_after_idle(self) -> None:
        """End idle workers that compute: without a job there is nothing to compute but for an intruder.

        To be called every few seconds; it reads one clock per worker.
        """
        for worker in self.workers:
            spent_s = worker.process.cpu_s() if worker.idle else None
            if spent_s is not None and worker.idle_cpu_s is not None and spent_s - worker.idle_cpu_s > _IDLE_CPU_S:
                self.end(worker, "forbidden")
            worker.idle_cpu_s = spent_s

    def end(self, worker: Worker, reason: Reason) -> None:
        """Kill; the employer hears of the loss once the process is reaped."""
        worker.stop_timer()
        if worker.doom is None:
            worker.doom = reason
        worker.process.kill()

    def inspect(self, worker: Worker) -> None:
        """After a job: have a fresh worker come if this one has grown or is old; it works until that one is there.

        Grown is what keeps more than it started with and its largest job needed: memory that a job took stays with the
        allocator for the next one, and replacing a worker for that would only have it taken again.
        """
        grown = worker.rss_bytes > worker.own_bytes + self._settings.recycle_growth_bytes
        old = worker.jobs_done >= self._settings.recycle_jobs
        if not (grown or old) or worker.retiring or worker.doom is not None:
            return
        worker.retiring = True
        self.restarts["memory" if grown else "age"] += 1
        self._restore_width()

    # --- what processes report (process.Listener) -------------------------------------------------------------------

    def answered(self, process: WorkerProcess, answer: Answer) -> None:
        worker = self._workers[process]
        match answer:
            case Ready():
                self._welcome(worker, answer)
            case StartFailed(reason=reason):
                self._start_failure = reason
            case _:
                self._employer.reported(worker, answer)
        self._retire_spares()
        self._employer.changed()

    def talked_nonsense(self, process: WorkerProcess) -> None:
        """What does not speak our language was taken over or is broken."""
        self.end(self._workers[process], "crash")

    def died(self, process: WorkerProcess) -> None:
        worker = self._workers.pop(process)
        worker.stop_timer()
        reason: Reason = worker.doom or _cause(worker)
        if reason == "start" and process.broke_out:
            self._start_failure = (
                "the system call filter ended a worker while it started; media.sandbox: off starts without the filter"
            )
        self._employer.lost(worker, "stop" if self._stopping else reason)
        if not self._stopping:
            if reason != "stop":
                self.restarts[reason] += 1
            self._start_failures += reason == "start"
            self._restore_width()
            self._employer.changed()
        self._changed.set()

    def _welcome(self, worker: Worker, ready: Ready) -> None:
        if self._fingerprint is not None and ready.fingerprint != self._fingerprint:
            # A library was exchanged under our feet: this worker would make other bytes than the plan's version says.
            self._start_failure = f"workers disagree: {self._fingerprint}, then {ready.fingerprint}"
            self.end(worker, "start")
            return
        self._fingerprint = ready.fingerprint
        self._start_failures = 0
        self.box = ready.box
        worker.ready = True
        worker.rss_bytes = worker.start_bytes = ready.rss_bytes
        worker.stop_timer()
        self._restore_width()
        self._changed.set()

    # --- how many there are -----------------------------------------------------------------------------------------

    def _restore_width(self) -> None:
        """Start what is missing: at once, or after a growing pause when workers die before they are ready.

        Before the first worker was ever ready nothing is repeated: `start` reports the failure instead.
        """
        if self._stopping or self._restart is not None or (self._start_failures and self._fingerprint is None):
            return
        if self._start_failures:
            pause_s = min(_MAX_START_PAUSE_S, 0.25 * 2.0 ** min(self._start_failures, 10))
            self._restart = asyncio.get_running_loop().call_later(pause_s, self._spawn_missing)
        else:
            self._spawn_missing()

    def _spawn_missing(self) -> None:
        self._restart = None
        standing = sum(not worker.retiring and worker.doom is None for worker in self._workers.values())
        for number in range(standing, self._width):
            try:
                process = WorkerProcess(
                    self._settings, self._slab, self, self._command, hurried=number < self._settings.workers
                )
            except OSError as error:  # no descriptor, memory or process is to be had at this moment
                self._start_failure = f"a worker cannot be started: {error.strerror or error}"
                self._start_failures += 1
                self.restarts["start"] += 1
                self._restore_width()
                return
            worker = self._workers[process] = Worker(process)
            deadline_s = self._settings.start_deadline_s
            worker.timer = asyncio.get_running_loop().call_later(deadline_s, self.end, worker, "start")

    def _retire_spares(self) -> None:
        ready = sum(worker.ready and worker.doom is None for worker in self._workers.values())
        for worker in self.workers:
            if ready > self._width and worker.retiring and worker.idle:
                self._dismiss(worker)
                ready -= 1

    def _dismiss(self, worker: Worker) -> None:
        """Let a worker leave by itself, and end it if it does not."""
        worker.stop_timer()
        if worker.doom is None:
            worker.doom = "stop"
        worker.process.hang_up()
        worker.timer = asyncio.get_running_loop().call_later(_LEAVE_WITHIN_S, self.end, worker, "stop")


def _cause(worker: Worker) -> Reason:
    """Why a worker died that nobody ended."""
    if not worker.ready:
        return "start"
    return "forbidden" if worker.process.broke_out else "crash"
