"""Whatever is lost on the way, before or after it was carried out: in the end the store knows exactly what is true.

Two replicas live random histories over a wire that fails at random: a batch is lost before the server saw it, or its
answers are lost after it was carried out. The bucket is busy throughout, so nothing drains and its arrival time is the
first charge's plus all that was used: a charge lost or made twice would show.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from gateway.quota.claim import ReservationId
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.state.redis import RedisWire
from gateway.state.scripts import SCRIPTS
from gateway.state.wire import Command, Reply, StoreUnavailable
from tests.state.redis_server import RedisServer, running
from tests.state.replica import Replica, claim, until

SLOW = Rate(1, 10, burst=500_000)  # ten seconds for each, and room for all
STEPS = 80


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with running() as started:
        yield started


class LossyWire(RedisWire):
    """Loses one batch in so many, unless it is ``calm``."""

    rng: random.Random
    calm = True

    async def carry(self, commands: Sequence[Command]) -> list[Reply]:
        fate = 0.0 if self.calm else self.rng.random()
        if fate > 0.85:
            raise StoreUnavailable("no_connection", "lost before it was seen")
        replies = await super().carry(commands)
        if fate > 0.7:
            raise StoreUnavailable("no_connection", "lost after it was carried out")
        return replies


@dataclass
class History:
    """One replica and what it knows to be true."""

    replica: Replica
    open: dict[ReservationId, tuple[int, int]] = field(default_factory=dict)  # KV tokens, images
    used_us: int = 0

    async def step(self, rng: random.Random) -> None:
        if self.open and rng.random() < 0.45:
            self.end(rng)
            return
        kv_tokens, images = rng.randint(0, 9), rng.randint(1, 6)
        number = await self.replica.take(claim(kv_tokens, images, limit=None, rate=SLOW))
        assert number is not None
        self.open[number] = (kv_tokens, images)

    def end(self, rng: random.Random) -> None:
        number = rng.choice(list(self.open))
        _, images = self.open.pop(number)
        cost_us = images * 10 * MICROSECONDS
        if rng.random() < 0.5:
            self.replica.release(number)
        else:
            cost_us = cost_us * rng.randint(60, 200) // 100
            self.replica.settle(number, (cost_us,))
        self.used_us += cost_us

    @property
    def all_us(self) -> int:
        return self.used_us + sum(images * 10 * MICROSECONDS for _, images in self.open.values())


def lossy(name: str, url: str, rng: random.Random) -> tuple[Replica, LossyWire]:
    replica = Replica(name, url)
    wire = LossyWire(replica.settings, SCRIPTS)
    wire.rng = rng
    replica.store._keeper.link._wire = wire
    return replica, wire


def server_us(server: RedisServer) -> int:
    words = [word for word in server.ask("TIME").decode().split("\r\n")[1:-1] if not word.startswith("$")]
    return int(words[0]) * MICROSECONDS + int(words[1])


@pytest.mark.parametrize("seed", range(8))
async def test_in_the_end_the_store_knows_exactly_what_is_true(server: RedisServer, seed: int) -> None:
    server.ask("FLUSHALL")
    rng = random.Random(seed)
    made = [lossy(name, server.unix_url, rng) for name in ("r1", "r2")]
    async with made[0][0] as one, made[1][0] as two:
        histories = [History(one), History(two)]
        began_us = server_us(server)
        await histories[0].step(rng)
        first_us = server_us(server)
        for _, wire in made:
            wire.calm = False
        for _ in range(STEPS):
            await rng.choice(histories).step(rng)
            await asyncio.sleep(rng.random() * 0.008)  # other outages, not one long one
        for _, wire in made:
            wire.calm = True
        await one.until_shared()
        await two.until_shared()
        held = {f"{each.replica.name}:{number}" for each in histories for number in each.open}
        await until(lambda: server.hash("vlmgw:1:{a}:held").keys() == held, "what is open is held, and nothing else")
        kv_tokens = sum(tokens for each in histories for tokens, _ in each.open.values())
        assert int(server.hash("vlmgw:1:{a}:sums").get("kv_tokens", "0")) == kv_tokens
        tat_us = int(server.hash("vlmgw:1:{a}:rates")["images/10"])
        assert began_us <= tat_us - sum(each.all_us for each in histories) <= first_us
        for each in histories:
            while each.open:
                each.end(rng)
        await until(lambda: server.hash("vlmgw:1:{a}:held") == {}, "all has ended")
        assert server.hash("vlmgw:1:{a}:sums") == {}
        tat_us = int(server.hash("vlmgw:1:{a}:rates")["images/10"])
        assert began_us <= tat_us - sum(each.all_us for each in histories) <= first_us
        assert sum(each.replica.events.count("store_back") for each in histories) > 2
