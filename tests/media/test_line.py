from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.media.headroom import Headroom
from gateway.media.job import Job
from gateway.media.line import Line


@pytest.fixture
def job(kit: Any) -> Iterator[Any]:
    made: list[Job] = []

    def make(*, pixels: bool, cost_s: float = 1.0, tenant: str = "t", memory_bytes: int = 1) -> Job:
        task = kit.task(b"source", plan=kit.plan() if pixels else None, tenant=tenant)
        new = Job(task, cost_s, 0.0)
        new.memory_bytes = memory_bytes
        made.append(new)
        task.source.close()
        return new

    yield make
    for each in made:
        each.release()


def emptied(line: Line, headroom: Headroom) -> list[Job]:
    out = []
    while (job := line.take(headroom)) is not None:
        out.append(job)
    return out


async def test_headers_go_ahead_of_pixels(job: Any) -> None:
    line = Line(10)
    pixels, header = job(pixels=True, cost_s=0.1), job(pixels=False, cost_s=0.005)
    line.offer(pixels)
    line.offer(header)
    assert (len(line), set(line)) == (2, {pixels, header})
    assert line.cost_s == pytest.approx(0.105)
    assert emptied(line, Headroom(10)) == [header, pixels]
    assert line.cost_s == 0.0


async def test_a_flood_of_headers_takes_half_of_the_time(job: Any) -> None:
    line = Line(100)
    pixels = [job(pixels=True, cost_s=0.1) for _ in range(2)]
    headers = [job(pixels=False, cost_s=0.04) for _ in range(8)]
    for each in (*pixels, *headers):
        line.offer(each)
    order = emptied(line, Headroom(10))
    assert [each.operation[0] for each in order] == list("eeepeeepee")


async def test_each_line_is_bounded_by_itself(job: Any) -> None:
    line = Line(2)
    assert line.has_room("prepare", "t", 2)
    assert not line.has_room("prepare", "t", 3)
    for _ in range(2):
        assert line.offer(job(pixels=True)) is None
    surplus = job(pixels=True)
    assert line.offer(surplus) is surplus
    assert line.has_room("examine", "t", 2)
    assert line.offer(job(pixels=False)) is None


async def test_what_is_ahead_counts_what_may_go_first(job: Any) -> None:
    line = Line(100)
    for _ in range(10):
        line.offer(job(pixels=True, cost_s=1.0))
    line.offer(job(pixels=False, cost_s=0.25))
    # A header waits for its like, and for no more pixels than that; pixels for all pixels before and the headers.
    assert line.ahead_s("examine", "t", 0.25) == pytest.approx(0.5)
    assert line.ahead_s("prepare", "t", 1.0) == pytest.approx(10.25)
    assert line.ahead_s("prepare", "other", 1.0) == pytest.approx(1.25)


async def test_whose_memory_share_is_used_up_is_passed_over(job: Any) -> None:
    line, headroom = Line(10), Headroom(100)
    headroom.take("greedy", 50)
    greedy, modest = (job(pixels=True, tenant=tenant, memory_bytes=30) for tenant in ("greedy", "modest"))
    line.offer(greedy)
    line.offer(modest)
    assert line.take(headroom) is modest
    headroom.take("modest", 30)
    assert line.take(headroom) is None
    headroom.give("greedy", 50)
    headroom.give("modest", 30)
    assert line.take(headroom) is greedy


async def test_a_large_job_is_waited_for_by_pixels_but_not_by_headers(job: Any) -> None:
    line, headroom = Line(10), Headroom(100)
    headroom.take("other", 50)
    large, small, header = (
        job(pixels=True, memory_bytes=60, tenant="a"),
        job(pixels=True, tenant="b"),
        job(pixels=False, tenant="c"),
    )
    for each in (large, small, header):
        line.offer(each)
    assert emptied(line, headroom) == [header]
    line.discard(small)
    assert set(line) == {large}


async def test_a_job_that_lost_its_worker_goes_first(job: Any) -> None:
    line = Line(1)
    waiting, lost = job(pixels=True), job(pixels=True)
    line.offer(waiting)
    line.put_first(lost)
    assert emptied(line, Headroom(10)) == [lost, waiting]
