"""What becomes of sources' answers, failures and silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gateway.types import BackendName
from gateway.upstream.membership import FLEET_LIMIT, Membership
from gateway.upstream.settings import BackendSettings, Found, NamedSource
from tests.upstream.scripted import until


def backends(*hosts: str) -> Found:
    return [BackendSettings(f"http://{host}", name=host) for host in hosts]


class Puppet:
    """A source that says what the test says."""

    def __init__(self) -> None:
        self.starts = 0
        self.fault: Exception | None = None

    async def watch(self, found: Callable[[Found], None], failed: Callable[[str], None]) -> None:
        self.starts += 1
        if self.fault is not None:
            raise self.fault
        self.found, self.failed = found, failed
        await asyncio.Event().wait()


class Fleet:
    """What was taken over, and what was told of it."""

    def __init__(self) -> None:
        self.taken: list[list[str]] = []
        self.told: list[tuple[str, dict[str, object]]] = []
        self.refuse: str | None = None

    def take(self, members: Found) -> None:
        if self.refuse is not None:
            raise ValueError(self.refuse)
        self.taken.append([member.backend_name for member in members])

    def tell(self, level: str, event: str, **fields: object) -> None:
        self.told.append((event, fields))

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.told]


@asynccontextmanager
async def membership(
    *puppets: Puppet, fixed: Found = (), hold_s: float = 3600.0
) -> AsyncIterator[tuple[Membership, Fleet]]:
    fleet = Fleet()
    names = [NamedSource(f"s{index}", puppet, hold_s) for index, puppet in enumerate(puppets)]
    under_test = Membership(fixed, names, fleet.take, fleet.tell)
    await under_test.start(0.0)
    await asyncio.sleep(0)  # the sources' tasks begin
    under_test.go_on()
    try:
        yield under_test, fleet
    finally:
        await under_test.close()


async def test_fixed_backends_and_what_sources_find_are_one_fleet() -> None:
    dns, file = Puppet(), Puppet()
    async with membership(dns, file, fixed=backends("fixed")) as (under_test, fleet):
        dns.found(backends("a", "b"))
        file.found(backends("c"))
        dns.found(backends("b"))
        assert fleet.taken == [["fixed", "a", "b"], ["fixed", "a", "b", "c"], ["fixed", "b", "c"]]
        dns.found(backends("b"))
        assert len(fleet.taken) == 3, "the same again is no change"
        assert fleet.told[-1] == ("backends_changed", {"joined": [], "left": ["a"], "backends": 3})
        assert [(state.name, state.ok, state.backends) for state in under_test.states()] == [
            ("s0", True, ("b",)),
            ("s1", True, ("c",)),
        ]


async def test_a_start_waits_for_first_answers_but_not_for_ever() -> None:
    quick, slow, broken = Puppet(), Puppet(), Puppet()
    fleet = Fleet()
    named = [NamedSource(name, puppet) for name, puppet in (("q", quick), ("s", slow), ("b", broken))]
    under_test = Membership((), named, fleet.take)
    started = asyncio.create_task(under_test.start(3600.0))
    await until(lambda: quick.starts + slow.starts + broken.starts == 3)
    quick.found(backends("a"))
    broken.failed("no answer")
    await asyncio.sleep(0)
    assert not started.done()
    slow.found(backends("b"))
    assert [member.backend_name for member in await started] == ["a", "b"]
    assert fleet.taken == [], "the first members are returned and not taken"
    await under_test.close()
    impatient = Membership((), [NamedSource("s", Puppet())], fleet.take)
    assert await impatient.start(0.0) == ()
    await impatient.close()


async def test_failures_take_nobody_away_and_are_told_once() -> None:
    dns = Puppet()
    async with membership(dns) as (under_test, fleet):
        dns.found(backends("a"))
        dns.failed("timeout")
        dns.failed("timeout")
        (state,) = under_test.states()
        assert (state.ok, state.backends, state.failures, state.problem) == (False, ("a",), 2, "timeout")
        dns.found(backends("a"))
        assert under_test.states()[0].ok
        assert fleet.events == ["backends_changed", "source_failed", "source_answers_again"]


async def test_an_empty_answer_must_last_to_be_believed() -> None:
    dns = Puppet()
    async with membership(dns) as (_, fleet):
        dns.found(backends("a"))
        dns.found([])
        assert fleet.taken == [["a"]]
        dns.found(backends("a", "b"))
        assert fleet.taken == [["a"], ["a", "b"]]
        assert "source_empty" in fleet.events
    brief = Puppet()
    async with membership(brief, hold_s=0.001) as (_, fleet):
        brief.found(backends("a"))
        brief.found([])
        await until(lambda: fleet.taken == [["a"], []])


async def test_a_failure_ends_the_wait_for_emptiness() -> None:
    dns = Puppet()
    async with membership(dns, hold_s=0.001) as (under_test, fleet):
        dns.found(backends("a"))
        dns.found([])
        dns.failed("timeout")
        assert under_test._kept[0].emptying is None
        assert fleet.taken == [["a"]]


async def test_of_two_with_one_name_the_first_counts() -> None:
    one, two = Puppet(), Puppet()
    async with membership(one, two) as (under_test, fleet):
        two.found([BackendSettings("http://second", name="a")])
        one.found([BackendSettings("http://first", name="a")])
        assert under_test._members[BackendName("a")].url == "http://first"
        one.found([BackendSettings("http://first", name="a"), BackendSettings("http://b", name="b")])
        assert fleet.events.count("backend_found_twice") == 1


async def test_a_fleet_has_an_end() -> None:
    dns = Puppet()
    async with membership(dns) as (_, fleet):
        dns.found(backends(*(f"h{number}" for number in range(FLEET_LIMIT + 5))))
        assert len(fleet.taken[0]) == FLEET_LIMIT
        assert fleet.events.count("too_many_backends") == 1


async def test_what_cannot_be_used_changes_nothing() -> None:
    dns = Puppet()
    async with membership(dns) as (_, fleet):
        dns.found(backends("a"))
        fleet.refuse = "backend b: ca.pem cannot be used"
        dns.found(backends("b"))
        assert fleet.told[-1] == ("backends_unusable", {"problem": "backend b: ca.pem cannot be used"})
        fleet.refuse = None
        dns.found(backends("b"))
        assert fleet.taken == [["a"], ["b"]]


async def test_a_source_that_breaks_down_is_a_failure() -> None:
    broken = Puppet()
    broken.fault = RuntimeError("surprise")
    async with membership(broken) as (under_test, _):
        await until(lambda: under_test.states()[0].problem == "RuntimeError: surprise")
