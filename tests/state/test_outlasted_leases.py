"""A replica away for longer than its leases, a take that was carried out unheard, one carried out late: charged once.

Nothing waits: a lease is ended by hand, as time would, and reaped by the other replica's next take. The bucket is busy
throughout, so it stands at the first charge's time plus all that was used, and a charge lost or made twice shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest

from gateway.quota.claim import Claim
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.quota.store import Denied, Granted
from gateway.state.link import Link
from gateway.state.redis import RedisWire
from gateway.state.scripts import SCRIPTS, TAKE
from gateway.state.settings import RedisSettings
from gateway.state.wire import Command, Reply, StoreUnavailable
from tests.state.redis_server import RedisServer, running
from tests.state.replica import Replica, claim, until

SLOW = Rate(1, 10, burst=500_000)  # ten seconds for each image, and room for all
LEASES, HELD, SUMS, RATES = (f"vlmgw:1:{{a}}:{name}" for name in ("leases", "held", "sums", "rates"))
GONE, GONE_AT = (f"vlmgw:1:{{a}}:{name}" for name in ("gone", "gone_at"))


@pytest.fixture(scope="module")
def shared_server() -> Iterator[RedisServer]:
    with running() as started:
        yield started


@pytest.fixture
def server(shared_server: RedisServer) -> RedisServer:
    shared_server.ask("FLUSHALL")
    return shared_server


class DeafWire(RedisWire):
    """``deaf``: what is asked is carried out, its answer is lost, nothing can be opened. ``dumb``: not even that."""

    deaf = dumb = False
    asked: list[Command]
    held_up: asyncio.Event | None = None  # answers come once it is set

    async def open(self) -> None:
        if self.deaf or self.dumb:
            raise StoreUnavailable("no_connection", "away")
        await super().open()

    async def carry(self, commands: Sequence[Command]) -> list[Reply]:
        self.asked += commands
        if self.dumb:
            raise StoreUnavailable("no_connection", "lost before it was seen")
        replies = await super().carry(commands)
        if self.held_up is not None:
            await self.held_up.wait()
        if self.deaf:
            raise StoreUnavailable("no_connection", "lost after it was carried out")
        return replies


@dataclass
class Pair:
    """A replica that is cut off at will, and one that never is."""

    server: RedisServer
    one: Replica
    two: Replica
    wire: DeafWire
    base_us: int

    async def back(self) -> None:
        self.wire.deaf = self.wire.dumb = False
        await self.one.until_shared()

    async def reap(self) -> None:
        """All leases are over, and somebody looks."""
        for name in ids(self.server, LEASES):
            self.server.ask("ZADD", LEASES, "1", name)
        number = await self.two.take(images(0))
        self.two.release(number)
        await until(lambda: not ids(self.server, LEASES), "the leases have ended")

    @property
    def charged_s(self) -> float:
        """What stands in the bucket beside its first charge, in seconds of draining."""
        return (int(self.server.hash(RATES)["images/10"]) - self.base_us) / MICROSECONDS

    async def is_charged(self, seconds: float) -> None:
        await until(lambda: self.charged_s == seconds, f"{seconds} s are charged")
        self.one.store._redis.flush()
        await self.one.store._beat()  # whatever was asked before has been carried out
        assert self.charged_s == seconds


@pytest.fixture
async def pair(server: RedisServer) -> AsyncIterator[Pair]:
    one, two = Replica("r1", server.unix_url), Replica("r2", server.unix_url)
    wire = DeafWire(one.settings, SCRIPTS)
    wire.asked = []
    one.store._keeper.link._wire = wire
    async with one, two:
        two.release(await two.take(images(6)))  # a minute: it never drains
        yield Pair(server, one, two, wire, int(server.hash(RATES)["images/10"]))


def ids(server: RedisServer, key: str) -> list[str]:
    words = server.ask("ZRANGE", key, "0", "-1").decode().split("\r\n")[1:-1]
    return [word for word in words if not word.startswith("$")]


def images(count: int, limit: int = 100, kv_tokens: int = 1) -> Claim:
    return claim(kv_tokens, count, limit=limit, rate=SLOW)


@pytest.mark.parametrize("ends", ["before", "after", "released"])
async def test_a_take_whose_answer_was_lost_is_charged_once(pair: Pair, ends: str) -> None:
    pair.wire.deaf = True
    number, granted = await pair.one.ask(images(3))
    assert isinstance(granted, Granted)
    await until(lambda: pair.charged_s == 30, "it was carried out")
    await pair.reap()
    used = {"before": 2, "after": 4, "released": 3}[ends]
    if ends == "before":
        pair.one.settle(number, (20 * MICROSECONDS,))
    await pair.back()
    if ends == "after":
        pair.one.settle(number, (40 * MICROSECONDS,))
    elif ends == "released":
        pair.one.release(number)
    await pair.is_charged(10 * used)
    assert pair.server.hash(HELD) == {}


async def test_one_that_was_refused_in_the_end_is_not_charged(pair: Pair) -> None:
    """Carried out there, refused here: the client was told to come back."""
    await pair.one.store._beat()
    assert pair.one.store.facts().replicas == 2
    here = await pair.one.take(images(0, kv_tokens=60))
    pair.wire.deaf = True
    _, denied = await pair.one.ask(images(3, kv_tokens=40))  # room there, and more than half of 100 here
    assert isinstance(denied, Denied)
    assert pair.charged_s == 30
    await pair.reap()
    await pair.back()
    pair.one.release(here)
    await pair.is_charged(0)


async def test_one_that_nobody_waited_for_is_given_back_behind_its_lease(pair: Pair) -> None:
    pair.wire.deaf, pair.wire.held_up = True, asyncio.Event()
    taking = asyncio.create_task(pair.one.take(images(3)))
    await until(lambda: pair.charged_s == 30, "it is carried out")
    taking.cancel()
    with suppress(asyncio.CancelledError):
        await taking
    pair.wire.held_up.set()
    await until(lambda: pair.one.is_degraded, "its answer is lost")
    await pair.reap()
    await pair.back()
    await pair.is_charged(0)


@pytest.mark.parametrize("lost", ["seen", "unseen"])
async def test_an_end_that_comes_behind_its_lease_corrects_the_charge_once(pair: Pair, lost: str) -> None:
    number = await pair.one.take(images(3))
    pair.wire.deaf, pair.wire.dumb = lost == "seen", lost == "unseen"
    pair.one.settle(number, (10 * MICROSECONDS,))
    await until(lambda: pair.one.is_degraded, "its answer is lost")
    if lost == "unseen":
        await pair.reap()
    await pair.back()
    await pair.is_charged(10)


async def test_a_replica_that_slept_beyond_its_leases_settles_what_it_had(pair: Pair) -> None:
    number = await pair.one.take(images(3))
    await pair.reap()
    later = await pair.one.take(images(1))  # its answer tells that the first lease is over
    pair.one.settle(number, (20 * MICROSECONDS,))
    pair.one.release(later)
    await pair.is_charged(30)


async def test_what_was_told_of_a_take_holds_though_it_comes_after(pair: Pair) -> None:
    pair.wire.dumb = True
    kept, ended = await pair.one.take(images(1)), await pair.one.take(images(0))
    assert pair.one.is_degraded
    late = [command for command in pair.wire.asked if command.script is TAKE]
    assert len(late) == 1  # the second was decided here
    pair.one.release(kept, ended)
    await pair.back()
    await pair.is_charged(10)
    link = Link(RedisWire(RedisSettings(pair.server.unix_url), SCRIPTS), deadline_s=30, on_down=lambda _: None)
    await link.open()
    assert await link.ask(late) == [[3]]
    await link.close()
    assert pair.charged_s == 10
    assert pair.server.hash(HELD) == {}
    assert await pair.one.take(images(1)) is not None
    await pair.is_charged(20)


async def test_what_is_remembered_has_an_end(pair: Pair) -> None:
    for _ in range(3):
        assert await pair.one.take(images(1)) is not None
        assert await pair.one.take(images(0)) is not None
    await pair.reap()
    assert sorted(pair.server.hash(GONE)) == sorted(ids(pair.server, GONE_AT)) == ["r1:1", "r1:3", "r1:5"]
    for key in (GONE, GONE_AT):
        assert 0 < int(pair.server.ask("PTTL", key)[1:-2]) <= 3_600_000
    pair.server.ask("ZADD", GONE_AT, "1", "r1:3")  # an hour ago and more
    number = await pair.one.take(images(1))
    await pair.reap()
    assert sorted(pair.server.hash(GONE)) == sorted(ids(pair.server, GONE_AT)) == ["r1:1", "r1:5", f"r1:{number}"]
