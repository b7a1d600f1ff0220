"""The pool: image work behind a bounded, fair line, done by a crew of worker processes.

Decided here: which job runs where and when, what a lost worker means for its job, when a newcomer is turned away. Not
decided here: who is next (``fairqueue``), what a job costs (``cost``), how many processes there are (``crew``). A
worker has one job at a time. A worker that dies or overstays its deadline costs its image one more try on another
worker, then ImageWorkerLost for that image and, for a while, at once for its like.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from gateway.errors import Draining, GatewayError, ImageWorkerLost, PoolSaturated
from gateway.media.cost import expected_s
from gateway.media.crew import Crew, Reason, Worker
from gateway.media.fairqueue import FairQueue
from gateway.media.job import Job, Operation, Outcome, PoolFacts, PreparedOutput, Result, Task, TaskFacts
from gateway.media.messages import Effort, Examined, Failed, PreparedAt, as_error
from gateway.media.poison import PoisonList
from gateway.media.process import WORKER_COMMAND
from gateway.media.settings import PoolSettings
from gateway.media.shm import Slab

_MAX_ATTEMPTS = 2
# Weight of the newest observation in the ratio of real to expected time, and how far one observation may stray.
_LEARNING_RATE = 0.1
_MAX_TIME_RATIO = 100.0


class Pool:
    """``await start()``, then ``await run(task)`` from any number of coroutines, then ``await stop()``."""

    def __init__(
        self,
        settings: PoolSettings,
        slab: Slab,
        *,
        on_task: Callable[[TaskFacts], None] | None = None,
        command: Sequence[str] = WORKER_COMMAND,
    ) -> None:
        self._settings = settings
        self._on_task = on_task
        self._crew = Crew(settings, slab, command, self)
        self._queue: FairQueue[Job] = FairQueue(settings.max_queue_jobs)
        self._poison = PoisonList(settings.poison_entries, settings.poison_ttl_s)
        self._time_ratio: dict[Operation, float] = {"examine": 1.0, "prepare": 1.0}
        self._predicted_bytes = 0
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
            workers=sum(worker.ready for worker in workers),
            busy=sum(worker.job is not None for worker in workers),
            queued=len(self._queue),
            queued_s=self._queue.cost_s,
            rss_bytes=sum(worker.rss_bytes for worker in workers),
            predicted_bytes=self._predicted_bytes,
            restarts=dict(self._crew.restarts),
            box=self._crew.box,
        )

    async def start(self) -> None:
        """Raises crew.PoolCannotStart."""
        await self._crew.start()

    async def stop(self) -> None:
        """End every worker and reap it; what still waits or runs fails with Draining."""
        self._stopping = True
        for job in list(self._queue):
            self._queue.discard(job)
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
                self._queue.discard(job)
                job.release()

    # --- the line ---------------------------------------------------------------------------------------------------

    def _admit(self, task: Task) -> Job:
        now_s = self._now_s()
        if self._stopping:
            raise Draining
        if self._poison.holds(task.poison_key, now_s):
            raise ImageWorkerLost
        cost_s = expected_s(task.question) * self._time_ratio[task.operation]
        if self._queue.ahead_s(task.tenant, cost_s) / self._settings.workers > task.patience_s:
            raise self._saturated()
        job = Job(task, cost_s, now_s)
        turned_away = self._queue.offer(job)
        if turned_away is not None:
            self._finish(turned_away, "refused", self._saturated())
        if turned_away is not job:
            self._let_wait(job)
            self.changed()
        return job

    def _let_wait(self, job: Job) -> None:
        job.patience = asyncio.get_running_loop().call_later(job.task.patience_s, self._lose_patience, job)

    def _lose_patience(self, job: Job) -> None:
        self._queue.discard(job)
        self._finish(job, "refused", self._saturated())

    def _saturated(self) -> PoolSaturated:
        """The time to come back is the time that all waiting work will take."""
        return PoolSaturated(retry_after_s=max(1.0, self._queue.cost_s / self._settings.workers))

    def _assign(self, worker: Worker, job: Job) -> None:
        now_s = self._now_s()
        if not worker.process.ask(job.task.question):
            self._queue.put_first(job)
            self._crew.end(worker, "crash")
            return
        job.start(now_s)
        worker.job = job
        self._predicted_bytes += job.memory_bytes
        deadline_s = self._settings.job_deadline_s
        worker.timer = asyncio.get_running_loop().call_later(deadline_s, self._crew.end, worker, "deadline")

    def _take_job(self, worker: Worker) -> Job | None:
        """The job the worker has nothing more to do with."""
        job, worker.job = worker.job, None
        if job is not None:
            worker.stop_timer()
            self._predicted_bytes -= job.memory_bytes
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
        """Give idle workers what is next. A job that does not fit the memory budget waits, and all behind it do."""
        while (job := self._queue.head()) is not None:
            worker = self._crew.free_worker()
            over_budget = self._predicted_bytes + job.memory_bytes > self._settings.decode_budget_bytes
            if worker is None or (over_budget and self._predicted_bytes > 0):
                return
            self._queue.pop()
            self._assign(worker, job)

    def reported(self, worker: Worker, answer: Examined | PreparedAt | Failed) -> None:
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
        self._learn(job)
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
            self._queue.put_first(job)
            self._let_wait(job)
        else:
            self._poison.add(job.task.poison_key, self._now_s())
            self._finish(job, "lost", ImageWorkerLost(detail=f"{job.operation}: {reason}"))

    def _learn(self, job: Job) -> None:
        observed = min(job.task_s / expected_s(job.task.question), _MAX_TIME_RATIO)
        ratio = self._time_ratio[job.operation]
        self._time_ratio[job.operation] = ratio + _LEARNING_RATE * (observed - ratio)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()


def _outcome_of(worker: Worker, job: Job, answer: Examined | PreparedAt | Failed) -> Result | GatewayError:
    """What an answer means for its job. Raises ValueError for an answer that cannot be true."""
    prepares = job.operation == "prepare"
    match answer:
        case Failed():
            return as_error(answer)
        case Examined() if not prepares and len(answer.placement) == 16 and len(answer.content) == 32:
            return answer
        case PreparedAt() if prepares:
            # An asker who left needs no copy.
            data_url = b"" if job.future.done() else worker.process.output(answer.length)
            # It goes into a JSON string as it is: a worker that was taken over must not write JSON.
            if not data_url.isascii() or b'"' in data_url or b"\\" in data_url:
                raise ValueError("an answer that is no data URL")
            return PreparedOutput(answer, data_url)
        case _:
            raise ValueError("an answer to another question")
