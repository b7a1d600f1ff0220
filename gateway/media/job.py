"""One piece of work for a worker, from the moment it is asked for until the worker has nothing more to do with it.

Decided here: what a job holds and how it lets go. Not decided here: when it runs (``pool``). The job, not the asker,
keeps the source's bytes in place: the asker may leave at any moment, the worker reads until it answers or is reaped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.media.confine import BoxReport
from gateway.media.cost import predicted_bytes
from gateway.media.messages import (
    ClipAt,
    Examined,
    ExaminedClip,
    Measure,
    Measured,
    Prepare,
    PrepareClip,
    PreparedAt,
    Question,
)
from gateway.media.shm import Hold

Operation = Literal["examine", "prepare"]
Outcome = Literal["done", "refused", "lost", "dropped"]


def operation_of(question: Question) -> Operation:
    """What a question asks for: a header, or pixels."""
    return "prepare" if isinstance(question, Measure | Prepare | PrepareClip) else "examine"


@dataclass(frozen=True, slots=True)
class Task:
    """What the pool is asked. ``flow`` groups one request's tasks; ``patience_s`` bounds the wait, not the work.

    ``source`` is the asker's claim on the bytes; the job takes its own. ``poison_key`` names the content for the list
    of images that lost their workers. ``weight`` is the tenant's share against one of weight 1.
    """

    question: Question
    source: Hold
    tenant: str
    flow: int
    patience_s: float
    poison_key: bytes
    weight: float = 1.0

    @property
    def operation(self) -> Operation:
        return operation_of(self.question)


@dataclass(frozen=True, slots=True)
class PreparedOutput:
    answer: PreparedAt
    data_url: bytes


@dataclass(frozen=True, slots=True)
class ClipOutput:
    answer: ClipAt
    data_url: bytes


Result = Examined | Measured | PreparedOutput | ExaminedClip | ClipOutput


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What became of one task, for whoever counts. ``wait_s`` in line, ``task_s`` at the worker (both attempts)."""

    operation: Operation
    outcome: Outcome
    wait_s: float
    task_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The pool at one moment. ``restarts`` counts by reason: crash, forbidden, deadline, memory, age, start.

    ``workers`` is how many jobs it can have at work: spares only stand in for lost workers; were they counted,
    a full pool would look half empty.
    """

    workers: int
    busy: int
    queued: int
    queued_s: float
    rss_bytes: int
    predicted_bytes: int
    restarts: Mapping[str, int]
    box: BoxReport = field(default_factory=BoxReport)


class Job:
    """A task with its place in line. Compared by identity."""

    def __init__(self, task: Task, cost_s: float, now_s: float) -> None:
        self.task = task
        self.cost_s = cost_s
        self.memory_bytes = predicted_bytes(task.question)
        self.future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.attempts = 0
        self.queued_s = now_s
        self.wait_s = 0.0
        self.task_s = 0.0
        self.started_s: float | None = None
        self.patience: asyncio.TimerHandle | None = None
        self._hold: Hold = task.source.again()

    @property
    def tenant(self) -> str:
        return self.task.tenant

    @property
    def flow(self) -> int:
        return self.task.flow

    @property
    def weight(self) -> float:
        return self.task.weight

    @property
    def operation(self) -> Operation:
        return self.task.operation

    @property
    def running(self) -> bool:
        """Whether a worker may be reading the source now."""
        return self.started_s is not None

    def start(self, now_s: float) -> None:
        self.attempts += 1
        self.started_s = now_s
        self.wait_s += now_s - self.queued_s
        self.stop_waiting()

    def pause(self, now_s: float) -> None:
        """Back to the line: the worker was lost."""
        self.task_s += now_s - (self.started_s or now_s)
        self.started_s = None
        self.queued_s = now_s

    def stop_waiting(self) -> None:
        if self.patience is not None:
            self.patience.cancel()
            self.patience = None

    def release(self) -> None:
        """Nobody reads the source any more."""
        self.stop_waiting()
        self._hold.close()

    def succeed(self, result: Result) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
