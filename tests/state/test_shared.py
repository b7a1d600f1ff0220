"""Replicas and a real server that goes away in every way there is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gateway.quota.store import Denied, Granted, Store
from gateway.state.redis import RedisWire
from gateway.state.shared import SharedStore
from tests.state.redis_server import RedisServer, running
from tests.state.replica import QUICK, B, LoopClock, Replica, claim, until

ROOT = Path(__file__).parents[2]
SUMS = "vlmgw:1:{a}:sums"
LEASES = "vlmgw:1:{a}:leases"
RATES = "vlmgw:1:{a}:rates"
HASTY = replace(QUICK, deadline_s=0.3, connect_timeout_s=0.3)


def held(server: RedisServer) -> int:
    return int(server.hash(SUMS).get("kv_tokens", "0"))


def tat_us(server: RedisServer) -> int:
    return int(server.hash(RATES).get("images/60", "0"))


def test_it_fits_the_protocol() -> None:
    store: Store = SharedStore(
        RedisWire(QUICK), QUICK, LoopClock(), lambda: 0.0, replica="r",
        say=lambda *_, **__: None, observe=lambda *_: None,
    )  # fmt: skip
    assert store.renew((), 0) == ()
    assert store.expire(0) == ()


async def test_two_replicas_share_one_limit(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one, Replica("r2", server.unix_url) as two:
        first, second = await one.take(claim(60)), await two.take(claim(40))
        assert None not in (first, second)
        _, denied = await one.ask(claim(1))
        assert isinstance(denied, Denied)
        assert denied.in_use == 100
        two.release(second)
        third = await two.take(claim(40))  # the release goes before it
        assert third is not None
        assert await one.take(claim(60, tenant=B)) is not None
        one.release(first)
        two.release(third)
        await until(lambda: held(server) == 0, "all is given back")
        assert (one.store.facts().is_degraded, two.store.facts().is_degraded) == (False, False)


async def test_a_server_whose_clock_was_set_back_makes_nobody_wait_for_it(server: RedisServer) -> None:
    hour_us = 3_600_000_000
    async with Replica("r1", server.url) as one:
        number = await one.take(claim(10, 50))
        assert number is not None
        before = tat_us(server)
        # As if all of this had been told by a clock that was an hour ahead of what it is now.
        for field in ("images/60", "@clock"):
            server.ask("HINCRBY", RATES, field, str(hour_us))
        (lease,) = server.ask("ZRANGE", LEASES, "0", "-1").decode().split("\r\n")[2:3]
        server.ask("ZINCRBY", LEASES, str(hour_us), lease)
        assert await one.take(claim(1, 1)) is not None, "an hour of waiting for what is free"
        assert tat_us(server) < before + 60_000_000
        assert float(server.hash(RATES)["@clock"]) < before + 60_000_000
        assert float(server.ask("ZSCORE", LEASES, lease).strip()) < before + 60_000_000


async def test_a_request_costs_one_round_trip_and_its_end_one_off_its_path(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one:
        before = server.calls("evalsha"), server.calls("eval")
        numbers = [await one.take(claim(1, 2)) for _ in range(10)]
        assert (server.calls("evalsha"), server.calls("eval")) == (before[0] + 10, before[1])
        for number in numbers:
            one.settle(number, (10_000,))
        await until(lambda: held(server) == 0, "all is settled")
        # Ten ends of one tenant at one time are one script.
        assert (server.calls("evalsha"), server.calls("eval")) == (before[0] + 11, before[1])
        wanted = {("beat", "ok"): 1, ("take", "ok"): 10, ("finish", "ok"): 1}
        await until(lambda: one.results == wanted, "all is told")  # the server knows before the answer is here


async def test_a_settlement_corrects_the_charge(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one:
        number, granted = await one.ask(claim(1, 100))
        assert isinstance(granted, Granted)
        one.settle(number, (1_500_000,))
        await until(lambda: tat_us(server) == granted.tats_us[0] + 500_000, "the extra is charged")


async def test_everything_has_an_end_in_the_server(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one:
        await one.take(claim(5, 5))
        keys = server.keys()
        assert len(keys) == 6
        assert all(int(server.ask("PTTL", key)[1:-2]) > 0 for key in keys)


async def test_a_cancelled_take_gives_back_what_it_was_granted(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one:
        server.freeze()
        taking = asyncio.create_task(one.take(claim(50, 100)))
        await until(lambda: bool(one.store._redis.under_way), "the take is under way")
        taking.cancel()
        with suppress(asyncio.CancelledError):
            await taking
        server.thaw()
        number, granted = await one.ask(claim(100))
        one.release(number) if isinstance(granted, Granted) else None
        await until(lambda: held(server) == 0, "what nobody waited for is given back")
        _, whole = await one.ask(claim(1, 590))
        assert isinstance(whole, Granted)  # the charge went back as well


async def test_a_frozen_server_costs_one_deadline_and_no_request(server: RedisServer) -> None:
    async with Replica("r1", server.url, HASTY) as one:
        server.freeze()
        try:
            answers = await asyncio.gather(*(one.take(claim(1)) for _ in range(20)))
            assert None not in answers
            assert one.is_degraded
            assert one.events == ["store_away"]
            assert one.results["take", "timeout"] == 20  # all in the same moment
            more = [await one.take(claim(1)) for _ in range(50)]
            assert None not in more
            assert sum(count for (operation, _), count in one.results.items() if operation == "take") == 20
        finally:
            server.thaw()
        await one.until_shared()
        await until(lambda: held(server) == 70, "all that is open is held")
        one.release(*answers, *more)
        await until(lambda: held(server) == 0, "all is given back")
        assert one.events == ["store_away", "store_back"]


async def test_a_killed_server_is_told_everything_when_it_is_back_empty(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one, Replica("r2", server.url) as two:
        await until(lambda: one.store.facts().replicas + two.store.facts().replicas >= 3, "both are known")
        await one.store._renew()
        first, second = await one.take(claim(30, 300)), await two.take(claim(20, 100))
        before_us = tat_us(server)
        server.kill()
        # Shares: 50 of 100 for each; what was open counts.
        third = await one.take(claim(20, 100))
        assert third is not None
        assert await one.take(claim(1)) is None
        assert one.is_degraded
        fourth = await two.take(claim(30))
        assert fourth is not None
        assert await two.take(claim(1)) is None
        server.start()
        await one.until_shared()
        await two.until_shared()
        await until(lambda: held(server) == 100, "all that is open is held")
        # What was charged before is remembered, what was charged meanwhile is added.
        await until(lambda: tat_us(server) >= before_us + 1_000_000, "the bucket is as it must be")
        assert tat_us(server) == before_us + 1_000_000
        assert await one.take(claim(1)) is None
        one.release(first, third)
        two.release(second, fourth)
        await until(lambda: held(server) == 0, "all is given back")


async def test_leases_are_told_anew_within_a_renewal_where_nobody_noticed_the_loss(server: RedisServer) -> None:
    base = replace(QUICK, lease_s=1.0)
    async with Replica("r1", server.url, base) as one:
        number = await one.take(claim(30, 300))
        server.ask("FLUSHALL")
        await until(lambda: held(server) == 30, "the lease is told anew")
        assert one.events == []
        one.release(number)
        await until(lambda: held(server) == 0, "all is given back")


async def test_what_a_crashed_replica_held_comes_back_with_its_lease(server: RedisServer) -> None:
    async with Replica("r2", server.url) as two:
        base = replace(QUICK, lease_s=1.0)
        async with Replica("r1", server.url, base) as one:
            assert await one.take(claim(100)) is not None
            assert await two.take(claim(1)) is None
            assert server.ask("ZCARD", "vlmgw:1:replicas") == b":2\r\n"
            assert one.store._renewing is not None
            one.store._renewing.cancel()  # it gives no more signs of life
            while await two.take(claim(1)) is None:  # noqa: ASYNC110  # its lease ends by itself
                await asyncio.sleep(0.01)
            assert two.store.facts().expired_count == 1
            while two.store.facts().replicas != 1:
                await two.store._renew()


async def test_a_living_replica_keeps_what_it_holds_beyond_its_lease(server: RedisServer) -> None:
    base = replace(QUICK, lease_s=2.0)
    async with Replica("r1", server.url, base) as one, Replica("r2", server.url) as two:
        number = await one.take(claim(100))
        await until(lambda: one.results["renew", "ok"] >= 4, "four renewals, one every third of a lease")
        assert await two.take(claim(1)) is None
        one.release(number)


async def test_ends_while_it_is_away_are_known_when_it_is_back(server: RedisServer) -> None:
    async with Replica("r1", server.url, HASTY) as one:
        settled, released = await one.take(claim(30, 100)), await one.take(claim(30, 100))
        before_us = tat_us(server)
        server.freeze()
        during = await one.take(claim(10, 10))
        assert one.is_degraded
        one.settle(settled, (3_000_000,))  # two seconds more than was charged
        one.release(released)
        one.settle(during, (100_000,))
        server.thaw()
        await one.until_shared()
        await until(lambda: held(server) == 0, "nothing is held")
        await until(lambda: tat_us(server) == before_us + 2_000_000 + 100_000, "and all is charged, once")


async def test_starting_without_a_server_serves_within_the_assumed_share(server: RedisServer) -> None:
    server.kill()
    try:
        async with Replica("r1", server.url, replace(HASTY, min_replicas=4)) as one:
            assert one.is_degraded
            assert one.store.facts().replicas == 4
            first = await one.take(claim(25))
            assert first is not None
            assert await one.take(claim(1)) is None
            server.start()
            await one.until_shared()
            assert await one.take(claim(75)) is not None
            assert await one.take(claim(1)) is None
    finally:
        server.restart()


async def test_a_server_that_answers_nonsense_is_away(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one:
        server.ask("SET", SUMS, "not a hash")
        assert await one.take(claim(1)) is not None
        assert one.results["take", "refused"] == 1
        server.ask("FLUSHALL")
        await one.until_shared()


async def test_an_acl_user_needs_no_more_than_the_docs_say() -> None:
    needed = ("~vlmgw:*", "+@scripting", "+@read", "+@write", "+@connection", "+time", "+ping")
    assert " ".join(needed[1:]) in (ROOT / "docs" / "behaviour.md").read_text()
    with running() as server:
        server.ask("ACL", "SETUSER", "gateway", "on", ">word", *needed)
        base = replace(QUICK, username="gateway", password="word", lease_s=1.0)
        async with Replica("r1", server.url, base) as one:
            number = await one.take(claim(5, 5))
            await until(lambda: one.results["renew", "ok"] >= 1, "a renewal")
            server.ask("FLUSHALL")
            await until(lambda: one.results["tell", "ok"] >= 1, "the loss is noticed")
            one.settle(number, (10_000,))
        assert one.events == []
        assert {result for _, result in one.results} == {"ok"}


async def test_who_has_another_secret_is_told_once(server: RedisServer) -> None:
    async with Replica("r1.aaaaaaaa", server.url) as one, Replica("r2", server.url) as nameless:
        async with Replica("r3.aaaaaaaa", server.url) as alike:
            assert (one.events, nameless.events, alike.events) == ([], [], [])
        async with Replica("r4.bbbbbbbb", server.url) as stranger:
            assert stranger.events == ["secrets_differ"]
            stranger.release(await stranger.take(claim(5)))
            await stranger.store._restore()
            assert stranger.events == ["secrets_differ"]
        assert one.events == []


async def test_stopping_leaves_the_registry(server: RedisServer) -> None:
    async with Replica("r1", server.url) as one:
        one.release(await one.take(claim(5)))
    assert server.keys() == []
