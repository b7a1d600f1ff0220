"""A take that was carried out unheard, and an outage that outlasts its lease: charged once.

Nothing waits: leases are ended by hand, as time would, and reaped by the other replica's next take, or vanish with
their keys as where nobody asks. The bucket is busy throughout, so it stands at the first charge's time plus all
that was used, and a charge lost or made twice shows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest

from gateway.quota.claim import Claim
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.quota.store import Granted
from gateway.state.redis import RedisWire
from gateway.state.scripts import SCRIPTS
from gateway.state.wire import Command, Reply, StoreUnavailable
from tests.state.redis_server import RedisServer
from tests.state.replica import Replica, claim, until

SLOW = Rate(1, 10, burst=500_000)  # ten seconds for each image, and room for all
LEASES, HELD, SUMS, RATES, CHARGED = (
    f"vlmgw:1:{{a}}:{name}" for name in ("leases", "held", "sums", "rates", "charged")
)
HOUR_US = 3_600 * MICROSECONDS


class DeafWire(RedisWire):
    """``deaf``: what is asked is carried out, its answer is lost, nothing can be opened."""

    deaf = False

    async def open(self) -> None:
        if self.deaf:
            raise StoreUnavailable("no_connection", "away")
        await super().open()

    async def carry(self, commands: Sequence[Command]) -> list[Reply]:
        replies = await super().carry(commands)
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
        self.wire.deaf = False
        await self.one.until_shared()

    async def reap(self) -> None:
        """All leases are over, and somebody looks."""
        for name in ids(self.server, LEASES):
            self.server.ask("ZADD", LEASES, "1", name)
        number = await self.two.take(images(0))
        self.two.release(number)
        await until(lambda: not ids(self.server, LEASES), "the leases have ended")

    async def vanish(self) -> None:
        """All leases are over, and nobody looked: the keys went as their time came."""
        self.server.ask("DEL", LEASES, HELD, SUMS)

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
    one.store._keeper.link._wire = wire
    async with one, two:
        two.release(await two.take(images(6)))  # a minute: it never drains
        yield Pair(server, one, two, wire, int(server.hash(RATES)["images/10"]))


def ids(server: RedisServer, key: str) -> list[str]:
    words = server.ask("ZRANGE", key, "0", "-1").decode().split("\r\n")[1:-1]
    return [word for word in words if not word.startswith("$")]


def images(count: int) -> Claim:
    return claim(1, count, rate=SLOW)


@pytest.mark.parametrize("ends", ["before", "after", "released"])
@pytest.mark.parametrize("lease", ["reaped", "vanished"])
async def test_a_take_whose_answer_was_lost_is_charged_once(pair: Pair, lease: str, ends: str) -> None:
    pair.wire.deaf = True
    number, granted = await pair.one.ask(images(3))
    assert isinstance(granted, Granted)
    await until(lambda: pair.charged_s == 30, "it was carried out")
    await (pair.reap() if lease == "reaped" else pair.vanish())
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


async def test_what_was_told_and_not_heard_is_told_again_and_charged_once(pair: Pair) -> None:
    """The telling and the end behind it are carried out, the answers of both are lost, and it is told once more."""
    pair.wire.deaf = True
    number, _ = await pair.one.ask(images(3))
    await until(lambda: pair.charged_s == 30, "it was carried out")
    (told,) = pair.one.store._book.to_tell(images(3).tenant)
    await pair.back()
    pair.one.release(number)
    await until(lambda: not ids(pair.server, CHARGED), "it has ended")
    pair.one.store._book.page(images(3).tenant).unheard.append(told)
    await pair.one.store._restore()
    await pair.is_charged(30)


async def test_what_was_charged_is_remembered_until_it_is_settled(pair: Pair) -> None:
    kept, ended = await pair.one.take(images(1)), await pair.one.take(images(1))
    assert ids(pair.server, CHARGED) == [f"r1:{kept}", f"r1:{ended}"]
    pair.one.release(ended)
    await until(lambda: ids(pair.server, CHARGED) == [f"r1:{kept}"], "the one that ended is forgotten")
    assert await pair.one.take(images(0)) is not None
    assert ids(pair.server, CHARGED) == [f"r1:{kept}"], "what is charged nothing needs no memory"


async def test_what_is_remembered_has_an_end(pair: Pair) -> None:
    await pair.one.take(images(1))
    assert 0 < int(pair.server.ask("PTTL", CHARGED)[1:-2]) <= int(pair.server.ask("PTTL", RATES)[1:-2]) + 1_000
    await pair.reap()
    assert ids(pair.server, CHARGED) == ["r1:1"]
    pair.server.ask("ZADD", CHARGED, str(pair.base_us - HOUR_US - 60 * MICROSECONDS), "r1:1")
    await pair.one.take(images(1))
    assert ids(pair.server, CHARGED) == ["r1:2"]
