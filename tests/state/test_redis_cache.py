"""Against a real server: entries end, keep to the budget, and nothing that happens to the server reaches a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from gateway.state.keeper import Keeper
from gateway.state.redis_cache import CacheLimits, RedisCache
from gateway.state.settings import RedisSettings
from tests.state.redis_server import RedisServer, running

pytestmark = pytest.mark.slow

KEYS = [bytes([number]) * 32 for number in range(40)]
LIMITS = CacheLimits(total_bytes=10_000, entry_bytes=5_000, deadline_s=5.0)


class Clock:
    def now_s(self) -> float:
        return time.monotonic()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with running() as started:
        yield started


@pytest.fixture(autouse=True)
def _empty(server: RedisServer) -> None:
    server.ask("FLUSHALL")


@asynccontextmanager
async def opened(url: str, limits: CacheLimits = LIMITS, prefix: str = "p") -> AsyncIterator[tuple[RedisCache, Keeper]]:
    settings = RedisSettings(url, prefix=prefix, retry_s=0.05)
    cache = RedisCache.open(settings, limits, Clock(), lambda: 0.0, lambda event, **facts: None)
    await cache.start(10.0)
    try:
        yield cache, cache._keeper
    finally:
        await cache.stop()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 - the condition lies in another process
            await asyncio.sleep(0.005)


async def put(cache: RedisCache, key: bytes, value: bytes) -> None:
    """Write and wait until it is written or dropped: the next answer comes behind it on the lane."""
    cache.put(key, value)
    await cache.get(b"another")


def total(server: RedisServer, prefix: str = "p") -> int:
    answer = server.ask("HGET", f"{prefix}:{{pictures}}:sizes", "total")
    return 0 if answer.startswith(b"$-1") else int(answer)


async def test_what_was_put_is_found_by_another_process_for_a_while(server: RedisServer) -> None:
    async with opened(server.url) as (one, _), opened(server.unix_url) as (other, _):
        value = bytes(range(256)) * 8
        await put(one, KEYS[0], value)
        assert await other.get(KEYS[0]) == value
        assert await other.get(KEYS[1]) is None
        name = f"p:{{pictures}}:{KEYS[0].hex()}"
        assert 3_590_000 < int(server.ask("PTTL", name).lstrip(b":")) <= 3_600_000
    async with opened(server.url, prefix="q") as (stranger, _):
        assert await stranger.get(KEYS[0]) is None


async def test_entries_keep_to_the_budget_and_the_oldest_make_room(server: RedisServer) -> None:
    async with opened(server.url) as (cache, _):
        for key in KEYS[:12]:
            await put(cache, key, b"x" * 1_000)
        assert total(server) == 10_000
        kept = [await cache.get(key) is not None for key in KEYS[:12]]
        assert kept.count(True) == 10
        assert kept[-1]
        await put(cache, KEYS[20], b"y" * 4_999)
        assert total(server) <= 10_000
        assert await cache.get(KEYS[20]) is not None


async def test_writing_an_entry_again_counts_it_once(server: RedisServer) -> None:
    async with opened(server.url) as (cache, _):
        for size in (1_000, 2_000, 500):
            await put(cache, KEYS[0], b"x" * size)
        assert total(server) == 500
        assert len(await cache.get(KEYS[0]) or b"") == 500


async def test_what_has_expired_leaves_the_books(server: RedisServer) -> None:
    async with opened(server.url, CacheLimits(10_000, ttl_s=0.02)) as (cache, _):
        for key in KEYS[:5]:
            await put(cache, key, b"x" * 1_000)

        async def is_gone() -> bool:
            return await cache.get(KEYS[4]) is None

        await until(is_gone)
        await put(cache, KEYS[5], b"x" * 10)
        assert total(server) == 10
        assert server.ask("ZCARD", "p:{pictures}:ends") == b":1\r\n"


async def test_too_large_an_entry_is_not_sent(server: RedisServer) -> None:
    async with opened(server.url) as (cache, _):
        before = server.calls("evalsha")
        await put(cache, KEYS[0], b"x" * 5_001)
        assert server.calls("evalsha") == before
        assert await cache.get(KEYS[0]) is None


async def test_a_burst_of_entries_waits_in_bounded_memory() -> None:
    with running() as server:
        limits = CacheLimits(1 << 30, entry_bytes=1 << 20, deadline_s=5.0)
        async with opened(server.url, limits) as (cache, keeper):
            server.freeze()
            for key in KEYS:
                cache.put(key, bytes(1 << 20))
            assert cache._pending_bytes == 4 << 20
            server.thaw()

            async def is_written() -> bool:
                await asyncio.sleep(0)
                return cache._pending_bytes == 0

            await until(is_written)
            assert keeper.link.is_up


async def test_a_frozen_server_costs_one_deadline_and_a_dead_one_nothing() -> None:
    with running() as server:
        async with opened(server.url, CacheLimits(10_000, deadline_s=0.3)) as (cache, keeper):
            await put(cache, KEYS[0], b"value")
            server.freeze()
            assert await asyncio.gather(*(cache.get(key) for key in KEYS[:5])) == [None] * 5
            assert not keeper.link.is_up
            cache.put(KEYS[1], b"dropped")
            server.kill()
            assert await cache.get(KEYS[0]) is None
            server.start()

            async def is_back() -> bool:
                await asyncio.sleep(0)
                return keeper.link.is_up

            await until(is_back)
            await put(cache, KEYS[2], b"again")
            assert await cache.get(KEYS[2]) == b"again"


async def test_a_server_without_memory_costs_the_entry_and_not_the_connection() -> None:
    with running("--maxmemory", "1mb", "--maxmemory-policy", "noeviction") as server:
        async with opened(server.url, CacheLimits(1 << 30, deadline_s=5.0)) as (cache, keeper):
            await put(cache, KEYS[0], bytes(3 << 20))
            await put(cache, KEYS[1], bytes(3 << 20))
            assert keeper.link.is_up
            assert await cache.get(KEYS[1]) is None
            server.ask("CONFIG", "SET", "maxmemory", "100mb")
            await put(cache, KEYS[2], b"again")
            assert await cache.get(KEYS[2]) == b"again"


async def test_a_value_of_another_kind_is_no_value(server: RedisServer) -> None:
    async with opened(server.url) as (cache, _):
        server.ask("RPUSH", f"p:{{pictures}}:{KEYS[0].hex()}", "x")
        assert await cache.get(KEYS[0]) is None
