from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import Draining
from gateway.media.job import Job


async def test_a_job_holds_the_bytes_and_lets_go_once(kit: Any) -> None:
    task = kit.task(kit.image())
    job = Job(task, cost_s=0.1, now_s=0.0)
    task.source.close()
    assert kit.slab.in_use_bytes > 0
    job.release()
    job.release()
    assert kit.slab.in_use_bytes == 0


async def test_waiting_and_working_are_counted_apart(kit: Any) -> None:
    task = kit.task(kit.image(), plan=kit.plan())
    job = Job(task, cost_s=0.1, now_s=10.0)
    assert (job.operation, job.running) == ("prepare", False)
    job.start(11.0)
    assert (job.running, job.attempts) == (True, 1)
    job.pause(13.0)
    job.start(13.5)
    job.pause(14.5)
    assert (job.wait_s, job.task_s, job.attempts, job.running) == (1.5, 3.0, 2, False)
    task.source.close()
    job.release()


async def test_an_end_comes_once(kit: Any) -> None:
    task = kit.task(kit.image())
    job = Job(task, cost_s=0.1, now_s=0.0)
    job.fail(Draining())
    job.fail(Draining())
    with pytest.raises(Draining):
        await job.future
    task.source.close()
    job.release()
