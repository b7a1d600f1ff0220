"""Everything that waits for a worker: questions about headers, and ahead of the pixels they are asked for.

Decided here: which job is next, how long a newcomer would wait, and who is turned away. A header costs a hundredth of
the pixels behind it and may be all that a refusal needs, so headers go first; but while pixels wait, no longer in a row
than the next job of pixels itself takes, so a flood of refusals takes at most half of the workers' time. Each of the
two lines is bounded and fair between tenants (``fairqueue``). Not decided here: when a wait is too long (``pool``).
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.media.fairqueue import FairQueue
from gateway.media.headroom import Fit, Headroom
from gateway.media.job import Job, Operation


class Line:
    """At most ``capacity`` jobs of each operation."""

    def __init__(self, capacity: int) -> None:
        self._examines: FairQueue[Job] = FairQueue(capacity)
        self._prepares: FairQueue[Job] = FairQueue(capacity)
        self._passed_s = 0.0  # headers given out since the last pixels, while pixels waited

    def __len__(self) -> int:
        return len(self._examines) + len(self._prepares)

    def __iter__(self) -> Iterator[Job]:
        yield from self._examines
        yield from self._prepares

    @property
    def cost_s(self) -> float:
        """All the work in line, for one worker."""
        return self._examines.cost_s + self._prepares.cost_s

    def ahead_s(self, operation: Operation, tenant: str, cost_s: float, weight: float = 1.0) -> float:
        """Work that would be done before the last of ``cost_s`` newly asked for by ``tenant`` could begin."""
        if operation == "examine":
            own_s = self._examines.ahead_s(tenant, cost_s, weight)
            return own_s + min(self._prepares.cost_s, own_s)
        own_s = self._prepares.ahead_s(tenant, cost_s, weight)
        return own_s + min(self._examines.cost_s, own_s + cost_s)

    def has_room(self, operation: Operation, tenant: str, job_count: int) -> bool:
        return self._of(operation).has_room(tenant, job_count)

    def offer(self, job: Job) -> Job | None:
        """Put a job in line; who was turned away for it, perhaps itself."""
        return self._of(job.operation).offer(job)

    def put_first(self, job: Job) -> None:
        self._of(job.operation).put_first(job)

    def discard(self, job: Job) -> None:
        self._of(job.operation).discard(job)

    def take(self, headroom: Headroom) -> Job | None:
        """The job that is to run now, taken out of line; ``None`` where none waits or none fits the memory."""
        pixels = self._prepares.head()
        if pixels is None:
            self._passed_s = 0.0
        elif self._passed_s >= pixels.cost_s or self._examines.head() is None:
            job = self._fitting(self._prepares, headroom)
            if job is not None:
                self._passed_s = 0.0
                return job
        job = self._fitting(self._examines, headroom)
        if job is not None and pixels is not None:
            self._passed_s += job.cost_s
        return job

    def _of(self, operation: Operation) -> FairQueue[Job]:
        return self._examines if operation == "examine" else self._prepares

    @staticmethod
    def _fitting(queue: FairQueue[Job], headroom: Headroom) -> Job | None:
        """The first whose turn it is, passing over tenants that have their share of the memory already."""
        for job in queue.heads():
            fit = headroom.fit(job.tenant, job.memory_bytes, queue.tenants)
            if fit is Fit.FITS:
                queue.take(job)
                return job
            if fit is Fit.ALL_FULL:
                return None
        return None
