from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, PoolSaturated, Rejected, Undecodable
from gateway.media.cache import FactsCache, PreparedCache, SingleFlight, Work
from gateway.types import ContentDigest, ImageFormat, PlacementDigest, Prepared, Probe, Size, SourceFacts

FACTS = SourceFacts(1, PlacementDigest(b"p"), ContentDigest(b"c"), Probe(ImageFormat.PNG, Size(1, 1)), canonical=True)


def prepared(byte_count: int) -> Prepared:
    return Prepared(b"x" * byte_count, Size(1, 1), ImageFormat.PNG, byte_count)


def test_facts_are_kept_by_recent_use() -> None:
    cache = FactsCache(2)
    cache.put("a", FACTS)
    cache.put("b", FACTS)
    assert cache.get("a") is FACTS
    cache.put("c", FACTS)
    assert [cache.get(key) for key in "abc"] == [FACTS, None, FACTS]
    assert len(cache) == 2


def test_prepared_images_are_kept_by_recent_use_within_their_bytes() -> None:
    cache = PreparedCache(100)
    for key in range(9):
        cache.put(key, prepared(12))
    assert (0 in cache, 8 in cache, cache.held_bytes, len(cache)) == (False, True, 96, 8)
    assert cache.get(1) is not None
    cache.put(9, prepared(12))
    assert (1 in cache, 2 in cache) == (True, False)
    cache.put(1, prepared(4))
    assert cache.held_bytes == 88


def test_a_giant_is_not_kept() -> None:
    cache = PreparedCache(80)
    cache.put("small", prepared(10))
    cache.put("small", prepared(11))
    assert (len(cache), cache.held_bytes, cache.get("small")) == (0, 0, None)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 15))))
def test_the_bytes_are_always_those_of_what_is_kept(puts: list[tuple[int, int]]) -> None:
    cache = PreparedCache(60)
    for key, byte_count in puts:
        cache.put(key, prepared(byte_count))
        kept = [cache.get(key) for key in range(6)]
        assert cache.held_bytes == sum(len(one.data_url) for one in kept if one) <= 60


class Kitchen:
    """Work that ends when told; counts how often it was begun and let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.released = 0
        self.cancelled = 0
        self.orders: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.flights: SingleFlight[str, str] = SingleFlight(lambda error: isinstance(error, Rejected))

    def begin(self) -> Work[str]:
        self.begun += 1
        return Work(self.cook(), self.release)

    def release(self) -> None:
        self.released += 1

    async def cook(self) -> str:
        try:
            return await asyncio.shield(self.orders)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def waiters(self, count: int) -> list[asyncio.Task[str]]:
        return [asyncio.create_task(self.flights.get("dish", self.begin)) for _ in range(count)]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_many_waiters_one_piece_of_work() -> None:
    kitchen = Kitchen()
    waiters = kitchen.waiters(3)
    await settle()
    kitchen.orders.set_result("soup")
    assert await asyncio.gather(*waiters) == ["soup"] * 3
    assert (kitchen.begun, kitchen.released, len(kitchen.flights)) == (1, 1, 0)


async def test_who_leaves_leaves_the_others_alone() -> None:
    kitchen = Kitchen()
    leader, follower = kitchen.waiters(2)
    await settle()
    leader.cancel()
    await settle()
    assert leader.cancelled()
    kitchen.orders.set_result("soup")
    assert await follower == "soup"
    assert (kitchen.begun, kitchen.cancelled) == (1, 0)


async def test_when_the_last_leaves_the_work_ends_and_lets_go() -> None:
    kitchen = Kitchen()
    waiters = kitchen.waiters(2)
    await settle()
    for waiter in waiters:
        waiter.cancel()
    await settle()
    assert (kitchen.cancelled, kitchen.released, len(kitchen.flights)) == (1, 1, 0)


async def test_work_cancelled_before_its_first_step_still_lets_go() -> None:
    kitchen = Kitchen()
    (waiter,) = kitchen.waiters(1)
    await asyncio.sleep(0)
    waiter.cancel()
    await settle()
    assert (kitchen.begun, kitchen.released) == (1, 1)


async def test_a_bad_image_is_bad_for_everybody_each_with_an_error_of_his_own() -> None:
    kitchen = Kitchen()
    waiters = kitchen.waiters(3)
    await settle()
    kitchen.orders.set_exception(Undecodable("Cut.", detail="d"))
    ends = await asyncio.gather(*waiters, return_exceptions=True)
    errors = [end for end in ends if isinstance(end, GatewayError)]
    for number, error in enumerate(errors):
        error.at(f"part {number}")
    assert [(error.message, error.detail, error.part) for error in errors] == [
        ("Cut.", "d", "part 0"),
        ("Cut.", "d", "part 1"),
        ("Cut.", "d", "part 2"),
    ]
    assert kitchen.begun == 1


async def test_a_full_line_meets_only_who_stood_in_it() -> None:
    kitchen = Kitchen()
    waiters = kitchen.waiters(3)
    await settle()
    first, kitchen.orders = kitchen.orders, asyncio.get_running_loop().create_future()
    first.set_exception(PoolSaturated())
    await settle()
    kitchen.orders.set_result("soup")
    ends = await asyncio.gather(*waiters, return_exceptions=True)
    assert isinstance(ends[0], PoolSaturated)
    assert ends[1:] == ["soup", "soup"]
    assert (kitchen.begun, kitchen.released) == (2, 2)


async def test_a_failure_to_begin_is_the_askers() -> None:
    flights: SingleFlight[str, str] = SingleFlight(lambda error: True)

    def begin() -> Work[str]:
        raise PoolSaturated

    with pytest.raises(PoolSaturated):
        await flights.get("dish", begin)
    assert len(flights) == 0
