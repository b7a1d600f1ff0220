"""Against a real server: replicas hear of each other, late and never of themselves, and nothing breaks without it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.state.redis_hints import RedisHints, read
from gateway.state.settings import RedisSettings
from tests.state.redis_server import RedisServer, running

pytestmark = pytest.mark.slow

IMAGES = [bytes([number]) * 16 for number in range(4)]


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


class Replica:
    """What one replica heard and counted."""

    def __init__(self, url: str, prefix: str = "p") -> None:
        self.heard: list[tuple[str, int, tuple[tuple[bytes, int], ...]]] = []
        self.counted: dict[str, int] = {}
        settings = RedisSettings(url, prefix=prefix, retry_s=0.05)
        self.hints = RedisHints.open(
            settings, Clock(), lambda: 0.0, lambda event, **facts: None, self._hear, self._count, beat_s=0.01
        )

    def _hear(self, backend: str, scope: int, images: Sequence[tuple[bytes, int]]) -> None:
        self.heard.append((backend, scope, tuple(images)))

    def _count(self, way: str, by: int) -> None:
        self.counted[way] = self.counted.get(way, 0) + by


@asynccontextmanager
async def started(*replicas: Replica) -> AsyncIterator[None]:
    for replica in replicas:
        await replica.hints.start(10.0)
    try:
        yield
    finally:
        for replica in replicas:
            await replica.hints.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the condition lies in another process
            await asyncio.sleep(0.005)


async def test_others_hear_once_and_the_teller_does_not(server: RedisServer) -> None:
    one, other = Replica(server.url), Replica(server.url)
    async with started(one, other):
        one.hints.tell("a", 7, IMAGES[:2], [100])
        one.hints.tell("a", 7, IMAGES[:2], [100])
        other.hints.tell("b", -3, IMAGES[2:3], [5])
        await until(lambda: bool(one.heard and other.heard))
        one.hints.tell("a", 7, IMAGES[3:], [1])
        await until(lambda: other.counted["heard"] == 3)
        await until(lambda: (one.counted["told"], other.counted["told"]) == (3, 1))
    assert other.heard == [("a", 7, ((IMAGES[0], 100), (IMAGES[1], 0))), ("a", 7, ((IMAGES[3], 1),))]
    assert one.heard == [("b", -3, ((IMAGES[2], 5),))]
    assert (one.counted, other.counted) == ({"told": 3, "heard": 1}, {"told": 1, "heard": 3})


async def test_a_newcomer_hears_what_was_told_before_it_came(server: RedisServer) -> None:
    one, late, stranger = Replica(server.url), Replica(server.url), Replica(server.url, prefix="q")
    async with started(one):
        one.hints.tell("a", 0, IMAGES[:1], [1])
        await until(lambda: one.counted.get("told") == 1)
        async with started(late, stranger):
            await until(lambda: bool(late.heard))
    assert stranger.heard == []


async def test_the_stream_ends_by_itself(server: RedisServer) -> None:
    one = Replica(server.url)
    async with started(one):
        one.hints.tell("a", 0, IMAGES[:1], [1])
        await until(lambda: one.counted.get("told") == 1)
    assert 0 < int(server.ask("PTTL", "p:{hints}:images").strip(b":\r\n")) <= 600_000


async def test_a_server_that_goes_and_comes_back_empty_is_told_what_is_new(server: RedisServer) -> None:
    one, other = Replica(server.url), Replica(server.url)
    async with started(one, other):
        one.hints.tell("a", 0, IMAGES[:1], [1])
        await until(lambda: bool(other.heard))
        server.kill()
        await until(lambda: not one.hints._keeper.link.is_up)
        one.hints.tell("a", 0, IMAGES[1:2], [1])
        server.start()
        await until(lambda: len(other.heard) == 2)


async def test_without_a_server_nothing_waits_and_what_is_pending_is_bounded() -> None:
    alone = Replica("redis://127.0.0.1:1/0")
    await alone.hints.start(0.01)
    for number in range(1000):
        alone.hints.tell("a", 0, [number.to_bytes(16, "big")], [1])
    assert len(alone.hints._pending) == 256
    await alone.hints.stop()
    assert alone.counted == {}


GOOD = {"a": {"0": {"00" * 16: 5}}}


BAD: list[object] = [
    [], "a", {"a": 1}, {"a": {"x": {}}}, {"a": {"0": []}}, {"a": {"0": {"zz": 1}}}, {"a": {"0": {"00": 1}}},
    {"a": {"0": {"00" * 16: True}}}, {"a": {"0": {"00" * 16: -1}}}, {"a": {"0": {"00" * 16: 1 << 40}}},
    {"a": {"9" * 30: {"00" * 16: 1}}},
]  # fmt: skip
ANYTHING = st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner))


@pytest.mark.parametrize("told", [b"", b"{", *(json.dumps(each).encode() for each in BAD)])
def test_what_has_another_shape_is_left_out(told: bytes) -> None:
    assert read(told) == []


def test_what_has_the_shape_is_read() -> None:
    assert read(json.dumps(GOOD).encode()) == [("a", 0, [(bytes(16), 5)])]


@given(
    st.binary() | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner))
)
def test_nothing_that_is_told_breaks_the_reader(told: object) -> None:
    read(told if isinstance(told, bytes) else json.dumps(told).encode())
