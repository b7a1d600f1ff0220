from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Draining, GatewayBug, ImageTooLarge, ImageWorkerLost, PoolSaturated, Undecodable
from gateway.media.digest import content_digest, placement_digest
from gateway.media.job import PreparedOutput, Task
from gateway.media.messages import Examined
from gateway.media.payload import read_text
from gateway.media.pool import Pool
from gateway.ports import MediaScope
from gateway.types import Change, ImageFormat, Size, TenantId

pytestmark = pytest.mark.slow


async def run(pool: Pool, task: Task) -> Any:
    """Run a task and give the asker's own claim back, as the service does."""
    try:
        return await pool.run(task)
    finally:
        task.source.close()


@contextmanager
def frozen(pool: Pool) -> Iterator[None]:
    """Its workers stand still: who is at work stays at work, and what waits stays in line."""
    pids = [worker.process.pid for worker in pool._crew.workers]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def scope(patience_s: float, deadline_s: float) -> MediaScope:
    return MediaScope(TenantId("t"), 1 << 20, 1 << 20, None, deadline_s, patience_s=patience_s)


async def test_an_image_is_examined_where_it_lies(kit: Any, start_pool: Any) -> None:
    pool = await start_pool()
    text = kit.image(size=[640, 480])
    answer = await run(pool, kit.task(text))
    data = read_text(memoryview(text), has_escapes=False, max_image_bytes=1_000).data
    assert isinstance(answer, Examined)
    assert answer.probe.raster == Size(640, 480)
    assert answer.placement == placement_digest(data)
    assert answer.content == content_digest(data, key=kit.content_key)
    assert (answer.byte_count, answer.canonical) == (len(data), True)
    assert pool.fingerprint == "fake-1"


async def test_an_image_is_prepared_and_the_data_url_copied_out(kit: Any, start_pool: Any) -> None:
    pool = await start_pool()
    output = await run(pool, kit.task(kit.image(), plan=kit.plan()))
    assert isinstance(output, PreparedOutput)
    assert output.data_url == b"data:image/png;base64,cmVuZGVyZWQg"
    assert output.answer.file_sha256 == hashlib.sha256(b"rendered ").digest()
    assert (output.answer.format, output.answer.width) == (ImageFormat.PNG, 32)


async def test_a_plan_that_keeps_the_file_only_spells_it_anew(kit: Any, start_pool: Any) -> None:
    pool = await start_pool()
    text = kit.image(at="render", do="bad")
    output = await run(pool, kit.task(text.replace(b"data:", b"DATA:"), plan=kit.plan(Change.DATA_URL)))
    assert output.data_url == text


async def test_what_is_wrong_with_an_image_comes_back_as_its_error(kit: Any, start_pool: Any) -> None:
    pool = await start_pool()
    with pytest.raises(Undecodable, match="bad"):
        await run(pool, kit.task(kit.image(at="probe", do="bad")))
    with pytest.raises(ImageTooLarge, match="1000000000"):
        await run(pool, kit.task(kit.image(size=[50_000, 20_000])))
    with pytest.raises(ImageTooLarge, match="memory"):
        await run(pool, kit.task(kit.image(at="render", do="memory"), plan=kit.plan()))
    with pytest.raises(GatewayBug) as surprise:
        await run(pool, kit.task(kit.image(at="render", do="surprise"), plan=kit.plan()))
    assert "RuntimeError at fake_worker.py" in str(surprise.value.detail)
    assert "secret" not in str(surprise.value.detail)
    assert pool.facts().restarts == {}


async def test_a_killed_worker_costs_nothing_but_time(kit: Any, start_pool: Any, tmp_path: Path) -> None:
    pool = await start_pool(sandbox="off")
    answer = await run(pool, kit.task(kit.image(at="probe", do="kill", once=str(tmp_path / "mark"))))
    assert isinstance(answer, Examined)
    assert pool.facts().restarts == {"crash": 1}
    assert [fact.outcome for fact in kit.reported] == ["done"]


async def test_a_worker_that_talks_nonsense_is_replaced(kit: Any, start_pool: Any, tmp_path: Path) -> None:
    pool = await start_pool(sandbox="off", workers=1)
    answer = await run(pool, kit.task(kit.image(at="probe", do="nonsense", once=str(tmp_path / "mark"))))
    assert isinstance(answer, Examined)
    assert pool.facts().restarts == {"crash": 1}


async def test_a_hanging_worker_is_killed_at_the_deadline(kit: Any, start_pool: Any, tmp_path: Path) -> None:
    pool = await start_pool(sandbox="off", job_deadline_s=0.2)
    answer = await run(pool, kit.task(kit.image(at="probe", do="stop", once=str(tmp_path / "mark"))))
    assert isinstance(answer, Examined)
    assert pool.facts().restarts == {"deadline": 1}


async def test_time_without_a_cpu_is_no_work(kit: Any, start_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    starved = {"told": 0, "least": 2}

    def kept_waiting_s(pid: int) -> float:
        starved["told"] += 1
        return 0.0 if starved["told"] < starved["least"] else 30.0

    monkeypatch.setattr("gateway.media.pool.kept_waiting_s", kept_waiting_s)
    pool = await start_pool(workers=1, job_deadline_s=0.2)
    answer = await run(pool, kit.task(kit.image(at="probe", do="sleep", value=0.4)))
    assert isinstance(answer, Examined)
    assert pool.facts().restarts == {}
    assert starved["told"] <= 2, "once at its begin, and once when its time seemed to be over"


async def test_a_poison_image_costs_two_workers_once_and_nobody_else_notices(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(workers=1)
    poison = kit.image(at="probe", do="kill")
    good = [asyncio.create_task(run(pool, kit.task(kit.image(number=number)))) for number in range(5)]
    for _ in range(3):
        with pytest.raises(ImageWorkerLost) as lost:
            await run(pool, kit.task(poison))
        assert lost.value.should_retry is False
    assert all(isinstance(answer, Examined) for answer in await asyncio.gather(*good))
    assert pool.facts().restarts == {"crash": 2}
    assert kit.slab.in_use_bytes == 0


async def test_a_spare_takes_over_at_once_and_never_works_beside_the_others(
    kit: Any, start_pool: Any, until: Any
) -> None:
    pool = await start_pool(workers=1, spare_workers=1)
    await until(lambda: len(pool._crew.workers) == 2 and all(worker.ready for worker in pool._crew.workers))
    assert pool.facts().workers == 1, "a spare is no room for work"
    with frozen(pool):
        jobs = [asyncio.create_task(run(pool, kit.task(kit.image(number=number)))) for number in range(2)]
        await until(lambda: pool.facts().queued == 1)
        assert pool.facts().busy == 1
        spare = pool._crew.workers[1]
        pool._crew.end(pool._crew.workers[0], "crash")
        await until(lambda: spare.job is not None)
    assert all(isinstance(answer, Examined) for answer in await asyncio.gather(*jobs))
    assert pool.facts().restarts == {"crash": 1}


async def test_poison_is_forgotten_after_a_while(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(poison_ttl_s=0.0)
    for _ in range(2):
        with pytest.raises(ImageWorkerLost):
            await run(pool, kit.task(kit.image(at="probe", do="kill")))
    assert pool.facts().restarts == {"crash": 4}


async def test_a_grown_worker_is_replaced_before_it_leaves(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1, recycle_growth_bytes=64 << 20)
    first = pool._crew.workers[0].process.pid
    await run(pool, kit.task(kit.image(at="probe", do="grow", value=100 << 20)))
    assert pool.alive
    assert isinstance(await run(pool, kit.task(kit.image())), Examined)
    await until(lambda: pool.facts().workers == 1 and pool._crew.workers[0].process.pid != first)
    assert pool.facts().restarts == {"memory": 1}
    assert pool.facts().rss_bytes < 64 << 20


async def test_memory_that_the_largest_job_took_is_no_growth(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(workers=1, recycle_growth_bytes=16 << 20)
    worker = pool._crew.workers[0]
    large = kit.plan(target=Size(2_000, 2_000))  # predicted at 12 bytes a pixel
    await run(pool, kit.task(kit.image(at="render", do="grow", value=20 << 20), plan=large))
    assert worker.rss_bytes > worker.start_bytes + (20 << 20)
    for number in range(3):
        await run(pool, kit.task(kit.image(number=number)))
    assert (pool.facts().restarts, pool._crew.workers) == ({}, (worker,))
    for number in range(2):
        image = kit.image(at="render", do="grow", value=20 << 20, number=number)
        await run(pool, kit.task(image, plan=large))
    assert pool.facts().restarts == {"memory": 1}, "what more jobs of that class leave behind is growth"


async def test_an_old_worker_is_replaced(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1, recycle_jobs=2)
    for number in range(2):
        await run(pool, kit.task(kit.image(number=number)))
    await until(lambda: pool.facts().restarts == {"age": 1} and len(pool._crew.workers) == 1)
    assert isinstance(await run(pool, kit.task(kit.image())), Examined)


async def test_a_cancelled_waiter_leaves_the_line(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1)
    with frozen(pool):
        running = asyncio.create_task(run(pool, kit.task(kit.image())))
        waiting = asyncio.create_task(run(pool, kit.task(kit.image(second=True))))
        await until(lambda: pool.facts().queued == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert pool.facts().queued == 0
    assert isinstance(await running, Examined)
    assert kit.slab.in_use_bytes == 0


async def test_bytes_are_kept_until_the_worker_is_done_with_them(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1)
    with frozen(pool):
        running = asyncio.create_task(run(pool, kit.task(kit.image())))
        await until(lambda: pool.facts().busy == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert kit.slab.in_use_bytes > 0
    await until(lambda: pool.facts().busy == 0)
    assert kit.slab.in_use_bytes == 0
    assert [fact.outcome for fact in kit.reported] == ["dropped"]


async def test_bytes_under_a_hung_worker_are_kept_until_it_is_reaped(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1, job_deadline_s=1.0)
    running = asyncio.create_task(run(pool, kit.task(kit.image(at="probe", do="stop"))))
    await until(lambda: pool.facts().busy == 1)
    running.cancel()
    await until(running.done)
    assert kit.slab.in_use_bytes > 0
    await until(lambda: kit.slab.in_use_bytes == 0)
    assert pool.facts().restarts == {"deadline": 1}


async def test_a_full_line_is_refused_at_once_with_a_time_to_come_back(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1, max_queue_jobs=2)
    with frozen(pool):
        slow = asyncio.create_task(run(pool, kit.task(kit.image(slow=True))))
        await until(lambda: pool.facts().busy == 1)
        waiting = [asyncio.create_task(run(pool, kit.task(kit.image(number=number)))) for number in range(2)]
        await until(lambda: pool.facts().queued == 2)
        with pytest.raises(PoolSaturated) as refused:
            await run(pool, kit.task(kit.image()))
    assert refused.value.retry_after_s is not None
    assert refused.value.retry_after_s >= 1.0
    await asyncio.gather(slow, *waiting)


async def test_another_tenant_finds_room_in_a_full_line(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1, max_queue_jobs=3)
    with frozen(pool):
        slow = asyncio.create_task(run(pool, kit.task(kit.image(slow=True), tenant="greedy")))
        await until(lambda: pool.facts().busy == 1)
        greedy = [asyncio.create_task(run(pool, kit.task(kit.image(n=n), tenant="greedy"))) for n in range(3)]
        await until(lambda: pool.facts().queued == 3)
        modest = asyncio.create_task(run(pool, kit.task(kit.image(), tenant="modest")))
        await until(lambda: any(each.done() for each in greedy))
    assert isinstance(await modest, Examined)
    ends = await asyncio.gather(slow, *greedy, return_exceptions=True)
    assert sum(isinstance(end, PoolSaturated) for end in ends) == 1


async def test_a_wait_longer_than_patience_is_refused(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1)
    with frozen(pool):
        slow = asyncio.create_task(run(pool, kit.task(kit.image(slow=True))))
        await until(lambda: pool.facts().busy == 1)
        with pytest.raises(PoolSaturated):
            await run(pool, kit.task(kit.image(), patience_s=0.05))
    assert isinstance(await slow, Examined)
    pool._pace._by_kind["examine"].taken_s = 1e6
    with frozen(pool):
        blocker = asyncio.create_task(run(pool, kit.task(kit.image(slow=True))))
        await until(lambda: pool.facts().busy == 1)
        before = time.monotonic()
        with pytest.raises(PoolSaturated):
            await run(pool, kit.task(kit.image(other=1), patience_s=100.0))
        assert time.monotonic() - before < 100.0, "refused without a wait"
    assert isinstance(await blocker, Examined)


async def test_a_request_that_cannot_be_done_in_time_is_refused_before_its_first_image(
    kit: Any, start_pool: Any, until: Any
) -> None:
    pool = await start_pool(workers=2, max_queue_jobs=8)
    tasks = [kit.task(kit.image(n=n), plan=kit.plan()) for n in range(4)]
    questions = [task.question for task in tasks]
    each_s = pool._pace.expected_s(questions[0])
    pool.check(questions, scope(0.0, 1.5 * each_s))  # a request's own images are no wait
    pool.check(questions, scope(1.0 * each_s, 0.5 * each_s))
    pool.check([], scope(0.0, 0.0))
    with pytest.raises(PoolSaturated):
        pool.check(questions, scope(0.0, 1.4 * each_s))
    with pytest.raises(PoolSaturated):
        pool.check(questions * 3, scope(60.0, 60.0))  # more than find room in line
    with frozen(pool):
        slow = [asyncio.create_task(run(pool, kit.task(kit.image(slow=n)))) for n in range(2)]
        await until(lambda: pool.facts().busy == 2)
        for worker in pool._crew.workers:
            worker.job.cost_s = 3000.0
        with pytest.raises(PoolSaturated) as refused:
            pool.check(questions[:1], scope(2000.0, 6000.0))
    assert refused.value.retry_after_s is not None
    assert 2900.0 < refused.value.retry_after_s <= 4500.0  # 3,000 s and up to half of that
    await asyncio.gather(*slow)
    assert {fact.operation for fact in kit.reported} == {"examine"}
    await pool.stop()
    with pytest.raises(Draining):
        pool.check(questions, scope(60.0, 60.0))
    for task in tasks:
        task.source.close()


async def test_those_who_are_refused_are_told_different_times(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(workers=1, max_queue_jobs=1)
    task = kit.task(kit.image())
    told = []
    for chance in (0.0, 0.5, 0.999):
        pool._chance = lambda chance=chance: chance
        with pytest.raises(PoolSaturated) as refused:
            pool.check([task.question] * 2, scope(60.0, 60.0))
        told.append(refused.value.retry_after_s)
    assert told == [1.0, 1.25, pytest.approx(1.4995)]
    task.source.close()


async def test_headers_are_read_while_pixels_wait(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1)
    with frozen(pool):
        pixels = [asyncio.create_task(run(pool, kit.task(kit.image(n=n), plan=kit.plan()))) for n in range(3)]
        await until(lambda: (pool.facts().busy, pool.facts().queued) == (1, 2))
        header = asyncio.create_task(run(pool, kit.task(kit.image())))
        await until(lambda: pool.facts().queued == 3)
    assert isinstance(await header, Examined)
    await asyncio.gather(*pixels)
    assert [fact.operation for fact in kit.reported] == ["prepare", "examine", "prepare", "prepare"]


async def test_jobs_run_no_wider_than_the_memory_they_are_predicted_to_need(
    kit: Any, start_pool: Any, until: Any
) -> None:
    pool = await start_pool(workers=2, decode_budget_bytes=1)
    with frozen(pool):
        running = [asyncio.create_task(run(pool, kit.task(kit.image(n=n), plan=kit.plan()))) for n in range(2)]
        await until(lambda: (pool.facts().busy, pool.facts().queued) == (1, 1))
        assert pool.facts().predicted_bytes > 1
    await asyncio.gather(*running)
    assert pool.facts().predicted_bytes == 0


async def test_stopping_fails_what_waits_and_leaves_no_process(kit: Any, start_pool: Any, until: Any) -> None:
    pool = await start_pool(workers=1)
    pids = [worker.process.pid for worker in pool._crew.workers]
    slow = asyncio.create_task(run(pool, kit.task(kit.image(at="probe", do="stop"))))
    waiting = asyncio.create_task(run(pool, kit.task(kit.image())))
    await until(lambda: pool.facts().queued == 1)
    await pool.stop()
    ends = await asyncio.gather(slow, waiting, return_exceptions=True)
    assert all(isinstance(end, Draining) for end in ends)
    assert kit.slab.in_use_bytes == 0
    assert all(kit.proc(pid, "stat") is None for pid in pids)
    late = kit.task(kit.image())
    with pytest.raises(Draining):
        await run(pool, late)


async def test_workers_ignore_the_signals_of_a_drain(kit: Any, start_pool: Any) -> None:
    pool = await start_pool(workers=1)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pool._crew.workers[0].process.pid, number)
    assert isinstance(await run(pool, kit.task(kit.image())), Examined)
    assert pool.facts().restarts == {}
