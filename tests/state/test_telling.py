"""Telling against a real server: the words, and that saying them twice changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.quota.claim import ReservationId
from gateway.quota.store import Granted
from gateway.state.book import Book
from gateway.state.link import Link
from gateway.state.redis import RedisWire
from gateway.state.scripts import SCRIPTS
from gateway.state.settings import RedisSettings
from gateway.state.telling import Teller
from gateway.state.wire import Command
from tests.state.redis_server import RedisServer, running
from tests.state.replica import A, claim

LEASE_US = 60_000_000
FAR_US = 4_000_000_000_000_000  # beyond any present time, below 2^53
HELD, RATES, SUMS, CHARGED = (f"vlmgw:1:{{a}}:{name}" for name in ("held", "rates", "sums", "charged"))


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with running() as started:
        yield started


@pytest.fixture
async def link(server: RedisServer) -> AsyncIterator[Link]:
    server.ask("FLUSHALL")
    made = Link(RedisWire(RedisSettings(server.unix_url), SCRIPTS), deadline_s=30, on_down=lambda _: None)
    await made.open()
    yield made
    await made.close()


class Teacher:
    def __init__(self, name: str = "r1") -> None:
        self.book = Book()
        self.teller = Teller(self.book, prefix="vlmgw", replica=name, lease_us=LEASE_US)

    def all(self, *under_way: int) -> list[Command]:
        return self.teller.commands(A, [ReservationId(each) for each in under_way])[0]


async def test_what_is_open_is_held_and_what_is_not_comes_back(server: RedisServer, link: Link) -> None:
    one, other = Teacher(), Teacher("r2")
    one.book.opened(ReservationId(1), claim(5, 7), (FAR_US,))
    one.book.opened(ReservationId(2), claim(6), ())
    other.book.opened(ReservationId(1), claim(70), ())
    (_, first), (_, second) = await link.ask(one.all()), await link.ask(other.all())
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert (first[1:], second[1:]) == ([2, 0], [1, 0])
    assert server.hash(HELD) == {
        "r1:1": f"kv_tokens 5|images/60 70000 {FAR_US}", "r1:2": "kv_tokens 6|", "r2:1": "kv_tokens 70|"
    }  # fmt: skip
    assert server.hash(SUMS) == {"kv_tokens": "81"}
    one.book.closed(ReservationId(1))
    one.book.opened(ReservationId(3), claim(1), ())
    one.book.closed(ReservationId(2))
    *_, third = await link.ask(one.all(2))
    assert isinstance(third, list)
    assert third[1:] == [1, 1]  # the second is under way and left alone
    assert server.hash(HELD).keys() == {"r1:2", "r1:3", "r2:1"}


async def test_charges_are_charged_once_however_often_they_are_told(server: RedisServer, link: Link) -> None:
    one = Teacher()
    one.book.take(claim(0, 100), ReservationId(1), FAR_US, 1)
    told = one.all()
    for _ in range(2):
        await link.ask(told)
    assert server.hash(RATES)["images/60"] == str(FAR_US + 1_000_000)
    one.book.take(claim(0, 100), ReservationId(2), FAR_US, 1)
    again = one.all()
    assert len(again) == len(told) + 1  # the first was never confirmed
    for _ in range(2):
        await link.ask(again)
    assert server.hash(RATES)["images/60"] == str(FAR_US + 2_000_000)


async def test_a_take_without_an_answer_is_charged_if_it_was_not_carried_out(server: RedisServer, link: Link) -> None:
    one = Teacher()
    server.ask("ZADD", CHARGED, "1", "r1:1")
    for number in (1, 2):
        one.book.take(claim(1, 100), ReservationId(number), FAR_US, 1, is_unsure=True)
    await link.ask(one.all())
    assert server.hash(RATES)["images/60"] == str(FAR_US + 1_000_000)


async def test_lost_buckets_are_what_all_replicas_remember(server: RedisServer, link: Link) -> None:
    one, other, late = Teacher("r1"), Teacher("r2"), Teacher("r3")
    one.book.saw(claim(0, 1), Granted((FAR_US + 3_000_000,), 5))
    other.book.saw(claim(0, 1), Granted((FAR_US + 4_000_000,), 6))
    one.book.take(claim(0, 100), ReservationId(1), FAR_US, 1)
    await link.ask(one.all())
    assert server.hash(RATES)["images/60"] == str(FAR_US + 4_000_000)
    for _ in range(2):
        await link.ask(other.all())
        assert server.hash(RATES)["images/60"] == str(FAR_US + 5_000_000)
    # What was seen after the loss is no news.
    late.book.saw(claim(0, 1), Granted((FAR_US + 9_000_000,), FAR_US))
    await link.ask(late.all())
    assert server.hash(RATES)["images/60"] == str(FAR_US + 5_000_000)
