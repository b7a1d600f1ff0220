"""The pool: image work behind a bounded, fair line, done by a crew of worker processes.

Decided here: where a job runs, what a lost worker means for it, and when a newcomer is turned away: at once, when the
line is full or would take longer than the newcomer may wait, with the time at which the line will be gone. Not decided
here: who is next (``line``), what a job costs (``cost``, ``pace``), how many processes there are (``crew``). A worker
has one job at a time. A worker that dies or overstays its deadline costs its image one more try on another
worker, then ImageWorkerLost for that image and, for a while, at once for its like.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from gateway.errors import Draining, GatewayError, ImageWorkerLost, PoolSaturated
from gateway.media.crew import Crew, Reason, Worker
from gateway.media.headroom import Headroom
from gateway.media.job import (
    ClipOutput,
    Job,
    Outcome,
    PoolFacts,
    PreparedOutput,
    Result,
    Task,
    TaskFacts,
    operation_of,
)
from gateway.media.line import Line
from gateway.media.messages import (
    ClipAt,
    Effort,
    Examine,
    ExamineClip,
    Examined,
    ExaminedClip,
    Failed,
    Measure,
    Measured,
    Prepare,
    PrepareClip,
    PreparedAt,
    Question,
    Report,
    as_error,
)
from gateway.media.pace import Pace
from gateway.media.poison import PoisonList
from gateway.media.priority import kept_waiting_s
from gateway.media.process import WORKER_COMMAND
from gateway.media.settings import PoolSettings
from gateway.media.shm import Slab
from gateway.ports import MediaScope

_MAX_ATTEMPTS = 2
# Those who are told the same time would all come back in the same moment.
_RETRY_SPREAD = 0.5
_MIN_RETRY_S = 1.0
# A busy machine stretches a job's deadline to so many times itself at most.
_MOST_STRETCHED = 6
_LEAST_EXTENSION_S = 0.01


class Pool:
    """``await start()``, then ``await run(task)`` from any number of coroutines, then ``await stop()``."""

    def __init__(
        self,
        settings: PoolSettings,
        slab: Slab,
        *,
        on_task: Callable[[TaskFacts], None] | None = None,
        command: Sequence[str] = WORKER_COMMAND,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``chance`` in [0, 1) spreads the times at which refused requests come back."""
        self._settings = settings
        self._chance = chance
        self._on_task = on_task
        self._crew = Crew(settings, slab, command, self)
        self._line = Line(settings.max_queue_jobs)
        self._poison = PoisonList(settings.poison_entries, settings.poison_ttl_s)
        self._pace = Pace()
        self._headroom = Headroom(settings.decode_budget_bytes)
        self._stopping = False

    @property
    def fingerprint(self) -> str:
        """Codec backend, versions and settings, the same in every worker. Raises GatewayBug before the start."""
        return self._crew.fingerprint

    @property
    def alive(self) -> bool:
        """Whether at least one worker can take jobs."""
        return self._crew.alive

    def facts(self) -> PoolFacts:
        workers = self._crew.workers
        return PoolFacts(
            workers=min(sum(worker.ready for worker in workers), self._settings.workers),
            busy=sum(worker.job is not None for worker in workers),
            queued=len(self._line),
            queued_s=self._line.cost_s,
            rss_bytes=sum(worker.rss_bytes for worker in workers),
            predicted_bytes=self._headroom.reserved_bytes,
            restarts=dict(self._crew.restarts),
            box=self._crew.box,
        )

    async def start(self) -> None:
        """Raises crew.PoolCannotStart."""
        await self._crew.start()

    async def stop(self) -> None:
        """End every worker and reap it; what still waits or runs fails with Draining."""
        self._stopping = True
        for job in list(self._line):
            self._line.discard(job)
            self._finish(job, "dropped", Draining())
        await self._crew.stop()

    async def run(self, task: Task) -> Result:
        """Have one task done. Cancelling is safe at any time: a waiting job leaves the line, a running one is dropped.

        Raises PoolSaturated at once when the line is full or the wait would exceed the task's patience;
        ImageWorkerLost; Draining; and whatever the worker found wrong with the image.
        """
        job = self._admit(task)
        try:
            return await job.future
        finally:
            if not job.running:
                self._line.discard(job)
                job.release()

    def look_after_idle(self) -> None:
        """See ``Crew.look_after_idle``."""
        self._crew.look_after_idle()

    # --- the line ---------------------------------------------------------------------------------------------------

    def check(self, questions: Sequence[Question], scope: MediaScope) -> None:
        """Refuse a request's questions together, before the first of them costs anything.

        That is when they do not all find room in line, when the first would wait longer for others' than the
        scope's patience, or when the last could not be begun within its deadline more. Raises PoolSaturated, Draining.
        """
        if self._stopping:
            raise Draining
        if not questions:
            return
        operation, tenant, weight = operation_of(questions[0]), scope.tenant, scope.weight
        costs_s = [self._pace.expected_s(question) for question in questions]
        if not self._line.has_room(operation, tenant, len(questions)):
            raise self._saturated()
        running_s, width = self._running_s(), self._settings.workers
        first_s = running_s + self._line.ahead_s(operation, tenant, costs_s[0], weight)
        last_s = running_s + self._line.ahead_s(operation, tenant, sum(costs_s), weight) + sum(costs_s) - costs_s[-1]
        if first_s / width > scope.waits_s or last_s / width > scope.waits_s + scope.deadline_s:
            raise self._saturated()

    def _admit(self, task: Task) -> Job:
        now_s = self._now_s()
        if self._stopping:
            raise Draining
        if self._poison.holds(task.poison_key, now_s):
            raise ImageWorkerLost
        cost_s = self._pace.expected_s(task.question)
        ahead_s = self._running_s() + self._line.ahead_s(task.operation, task.tenant, cost_s, task.weight)
        if ahead_s / self._settings.workers > task.patience_s:
            raise self._saturated()
        job = Job(task, cost_s, now_s)
        turned_away = self._line.offer(job)
        if turned_away is not None:
            self._finish(turned_away, "refused", self._saturated())
        if turned_away is not job:
            self._let_wait(job)
            self.changed()
        return job

    def _running_s(self) -> float:
        """What workers still have to do of the jobs they are at, as far as was expected."""
        now_s = self._now_s()
        jobs = [worker.job for worker in self._crew.workers if worker.job is not None]
        return sum(max(0.0, job.cost_s - (now_s - (job.started_s or now_s))) for job in jobs)

    def _let_wait(self, job: Job) -> None:
        job.patience = asyncio.get_running_loop().call_later(job.task.patience_s, self._lose_patience, job)

    def _lose_patience(self, job: Job) -> None:
        self._line.discard(job)
        self._finish(job, "refused", self._saturated())

    def _saturated(self) -> PoolSaturated:
        """Come back when all that waits and runs will be done, or up to half of that later, by chance."""
        gone_s = (self._line.cost_s + self._running_s()) / self._settings.workers
        return PoolSaturated(retry_after_s=max(_MIN_RETRY_S, gone_s) * (1 + _RETRY_SPREAD * self._chance()))

    def _assign(self, worker: Worker, job: Job) -> None:
        now_s = self._now_s()
        if not worker.process.ask(job.task.question):
            self._line.put_first(job)
            self._crew.end(worker, "crash")
            return
        job.start(now_s)
        worker.job = job
        worker.idle_cpu_s = None
        self._headroom.take(job.tenant, job.memory_bytes)
        worker.kept_waiting_s = kept_waiting_s(worker.process.pid)
        self._watch(worker, self._settings.job_deadline_s)

    def _watch(self, worker: Worker, limit_s: float) -> None:
        worker.timer = asyncio.get_running_loop().call_later(limit_s, self._overdue, worker)

    def _overdue(self, worker: Worker) -> None:
        """End a worker that overstays; but the time for which others on the machine kept it from a CPU is no work."""
        job = worker.job
        assert job is not None, "the timer ends with the job"
        assert job.started_s is not None
        deadline_s, taken_s = self._settings.job_deadline_s, self._now_s() - job.started_s
        worked_s = taken_s - (kept_waiting_s(worker.process.pid) - worker.kept_waiting_s)
        if worked_s < deadline_s - _LEAST_EXTENSION_S and taken_s < _MOST_STRETCHED * deadline_s:
            self._watch(worker, deadline_s - worked_s)
        else:
            self._crew.end(worker, "deadline")

    def _take_job(self, worker: Worker) -> Job | None:
        """The job the worker has nothing more to do with."""
        job, worker.job = worker.job, None
        if job is not None:
            worker.stop_timer()
            self._headroom.give(job.tenant, job.memory_bytes)
            job.pause(self._now_s())
        return job

    def _finish(self, job: Job, outcome: Outcome, end: Result | GatewayError, effort: Effort | None = None) -> None:
        if job.future.cancelled():
            outcome = "dropped"
        job.release()
        if isinstance(end, GatewayError):
            job.fail(end)
        else:
            job.succeed(end)
        if self._on_task is not None:
            cpu_s = effort.cpu_s if effort else 0.0
            self._on_task(TaskFacts(job.operation, outcome, job.wait_s, job.task_s, cpu_s))

    # --- what the crew reports (crew.Employer) ----------------------------------------------------------------------

    def changed(self) -> None:
        """Give idle workers what is next."""
        while len(self._line) and (worker := self._crew.free_worker()) is not None:
            job = self._line.take(self._headroom)
            if job is None:
                return
            self._assign(worker, job)

    def reported(self, worker: Worker, answer: Report) -> None:
        """Finish the worker's job. An answer that comes when the worker is being ended is void: its death decides."""
        if worker.job is None or worker.doom is not None:
            return
        try:
            end = _outcome_of(worker, worker.job, answer)
        except ValueError:
            self._crew.end(worker, "crash")
            return
        job = self._take_job(worker)
        assert job is not None
        self._pace.learn(job.task.question, job.task_s)
        worker.jobs_done += 1
        worker.rss_bytes = answer.effort.rss_bytes
        worker.largest_job_bytes = max(worker.largest_job_bytes, job.memory_bytes)
        self._finish(job, "refused" if isinstance(end, GatewayError) else "done", end, answer.effort)
        self._crew.inspect(worker)

    def lost(self, worker: Worker, reason: Reason) -> None:
        """Try the worker's job once more elsewhere, or give it up."""
        job = self._take_job(worker)
        if job is None:
            return
        if job.future.done() or reason == "stop":
            self._finish(job, "dropped", Draining())
        elif job.attempts < _MAX_ATTEMPTS:
            self._line.put_first(job)
            self._let_wait(job)
        else:
            self._poison.add(job.task.poison_key, self._now_s())
            self._finish(job, "lost", ImageWorkerLost(detail=f"{job.operation}: {reason}"))

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()


def _outcome_of(worker: Worker, job: Job, answer: Report) -> Result | GatewayError:
    """What an answer means for its job. Raises ValueError for an answer that cannot be true."""
    asked = type(job.task.question)
    match answer:
        case Failed():
            return as_error(answer)
        case Examined() | ExaminedClip() if len(answer.placement) == 16 and len(answer.content) == 32:
            if asked is (Examine if isinstance(answer, Examined) else ExamineClip):
                return answer
        case Measured() if asked is Measure:
            return answer
        case PreparedAt() if asked is Prepare:
            return PreparedOutput(answer, _data_url(worker, job, answer.length))
        case ClipAt() if asked is PrepareClip:
            return ClipOutput(answer, _data_url(worker, job, answer.length))
    raise ValueError("an answer to another question")


def _data_url(worker: Worker, job: Job, length: int) -> bytes:
    """What the worker wrote. Raises ValueError."""
    # An asker who left needs no copy.
    data_url = b"" if job.future.done() else worker.process.output(length)
    # It goes into a JSON string as it is: a worker that was taken over must not write JSON.
    if not data_url.isascii() or b'"' in data_url or b"\\" in data_url:
        raise ValueError("an answer that is no data URL")
    return data_url
