from __future__ import annotations

import asyncio

import pytest

from gateway.errors import Undecodable
from gateway.media.gathering import all_of


async def value(number: int) -> int:
    await asyncio.sleep(0)
    return number


async def failing(message: str, ended: list[str], turns: int = 1) -> int:
    try:
        for _ in range(turns):
            await asyncio.sleep(0)
        raise Undecodable(message)
    finally:
        ended.append(message)


async def test_all_results_come_in_order() -> None:
    assert await all_of([]) == []
    assert await all_of([value(1)]) == [1]
    assert await all_of([value(number) for number in range(5)]) == list(range(5))


async def test_one_failure_ends_the_others_and_the_first_in_order_is_told() -> None:
    ended: list[str] = []
    with pytest.raises(Undecodable, match="first"):
        await all_of([failing("first", ended), failing("second", ended), failing("never", ended, turns=10_000)])
    assert sorted(ended) == ["first", "never", "second"]


async def test_who_leaves_takes_the_work_along() -> None:
    ended: list[str] = []
    work = asyncio.create_task(all_of([failing("a", ended, 10_000), failing("b", ended, 10_000)]))
    await asyncio.sleep(0.001)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert sorted(ended) == ["a", "b"]
