"""A replica in a process of its own: ``python -m tests.state.holder URL NAME ROUNDS``; prints what it saw as JSON.

It takes and ends as fast as it can in eight tasks. What is granted is counted in a second place after the grant and
before the end, so that number is never above what really is in flight, and never may be above the limit.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys

from gateway.state.link import Link
from gateway.state.redis import RedisWire
from gateway.state.settings import RedisSettings
from gateway.state.wire import Command
from tests.state.replica import PATIENT_S, Replica, claim

LIMIT = 100
COUNTER = "seen-in-flight"
_TASKS = 8


class Tally:
    """What one process saw."""

    def __init__(self) -> None:
        self.granted = self.denied = self.highest = 0


async def count(link: Link, by: int) -> int:
    found = await link.call(Command(("INCRBY", COUNTER, by)))
    assert isinstance(found, int)
    return found


async def take_and_end(replica: Replica, link: Link, rng: random.Random, tally: Tally) -> None:
    amount = rng.randint(1, 60)
    number = await replica.take(claim(amount, limit=LIMIT))
    if number is None:
        tally.denied += 1
        return
    tally.granted += 1
    tally.highest = max(tally.highest, await count(link, amount))
    await asyncio.sleep(rng.random() * 0.002)
    await count(link, -amount)
    replica.release(number)


async def hold(url: str, name: str, rounds: int) -> Tally:
    tally, rng = Tally(), random.Random(name)
    link = Link(RedisWire(RedisSettings(url)), deadline_s=PATIENT_S, on_down=lambda _: None)
    await link.open()
    async with Replica(name, url) as replica:
        await replica.until_shared()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)

        async def work() -> None:
            for _ in range(rounds):
                await take_and_end(replica, link, rng, tally)

        await asyncio.gather(*(work() for _ in range(_TASKS)))
        assert not replica.is_degraded
    await link.close()
    return tally


if __name__ == "__main__":
    found = asyncio.run(hold(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    sys.stdout.write(json.dumps({"granted": found.granted, "denied": found.denied, "highest": found.highest}) + "\n")
