"""The whole exercise: load through both balancers, gateways replaced in turn, books compared; then one is killed."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.e2e.processes import until
from tests.rollout.books import differences, settled, standing
from tests.rollout.deck import Deck, Kind
from tests.rollout.load import Load, Outcome, exchange
from tests.rollout.site import REPLICAS, Site, Turn


@dataclass(frozen=True, slots=True)
class Plan:
    """How much: ``requests`` in all at least, ``rounds`` over all gateways, ``clients`` at a time of each balancer."""

    requests: int = 5_000
    rounds: int = 3
    clients: int = 16
    pause_s: float = 0.2
    stream_tokens: tuple[int, int] = (60, 480)
    kills: int = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of it; ``findings`` is empty where everything held."""

    findings: list[str]
    facts: dict[str, object]


def drive(plan: Plan, folder: Path, say: Callable[[str], None] = lambda _: None) -> Verdict:
    """Run it. Raises AssertionError where not even the processes do what they should."""
    with Site(folder) as site:
        say("gateways, engines, Redis and balancers are up")
        return asyncio.run(_Drive(plan, site, say).run())


class _Drive:
    def __init__(self, plan: Plan, site: Site, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._site = site
        self._say = say
        self._deck = Deck(plan.stream_tokens)
        self._asks = iter(self._deck)
        self._findings: list[str] = []

    async def run(self) -> Verdict:
        await self._warm_up()
        rolled = await self._roll()
        killed = await self._kill() if self._plan.kills else {}
        return Verdict(self._findings, {"rolling": rolled, **({"killed": killed} if killed else {})})

    async def _warm_up(self) -> None:
        async with aiohttp.ClientSession() as session:
            balancers = itertools.cycle(self._site.balancers)
            for ask in self._deck.opening() + [self._deck.small_talk() for _ in range(24)]:
                balancer = next(balancers)
                found = await exchange(session, balancer.kind, balancer.url, ask)
                assert not found.failure, found.failure

    async def _under_load(self, act: Callable[[Load], None], least_each: int) -> list[Outcome]:
        """Load while ``act`` does its work in a thread, until it has, and ``least_each`` were sent to each balancer."""
        loads = {balancer.kind: Load(self._plan.pause_s) for balancer in self._site.balancers}
        total = Load()
        over = threading.Event()

        def acting() -> None:
            try:
                act(total)
            finally:
                over.set()

        async def count() -> None:
            while not over.is_set() or any(load.sent < least_each for load in loads.values()):
                total.outcomes = [each for load in loads.values() for each in load.outcomes]
                total.sent = sum(load.sent for load in loads.values())
                await asyncio.sleep(0.05)

        async with asyncio.TaskGroup() as group:
            acted = group.create_task(asyncio.to_thread(acting))
            group.create_task(count())
            for balancer in self._site.balancers:
                load = loads[balancer.kind]

                def goes_on(load: Load = load) -> bool:
                    return not over.is_set() or load.sent < least_each

                group.create_task(load.run(balancer.kind, balancer.url, self._asks, self._plan.clients, goes_on))
        acted.result()
        return [each for load in loads.values() for each in load.outcomes]

    # --- one after the other ----------------------------------------------------------------------------------------

    async def _roll(self) -> dict[str, object]:
        plan, site = self._plan, self._site
        lead = plan.requests // 6

        def act(load: Load) -> None:
            sent(load, lead, "load before the first restart")
            for turn in range(plan.rounds):
                for number in range(REPLICAS):
                    site.replace(number)
                    self._say(f"round {turn + 1}: gateway {number} replaced, {load.sent} requests so far")
            sent(load, lead, "load after the last restart")

        settled(site.redis)  # the last ends of the warm-up are told behind its answers
        before = standing(site.redis)
        outcomes = await self._under_load(act, -(-plan.requests // len(site.balancers)))
        held = settled(site.redis)
        books = differences(before, standing(site.redis), outcomes)
        failed = [each for each in outcomes if each.failure]
        self._findings += [f"{each.balancer} {each.ask.kind} {each.ask.request_id}: {each.failure}" for each in failed]
        self._check(not site.store_outages(), "a gateway lost Redis")
        self._check(not books["tokens_difference_us"], f"tokens are not exact: {books}")
        self._check(not books["requests_difference_us"], f"requests are not exact: {books}")
        for turn in site.turns:
            self._check(turn.exit_code == 0, f"gateway {turn.gateway} left with {turn.exit_code}")
        spanning = spanned(outcomes, site.turns)
        self._check(spanning > 0, "no stream spanned a drain")
        affinity = self._affinity(outcomes)
        return {
            "requests": len(outcomes),
            "failed": len(failed),
            "streams": sum(each.ask.kind is Kind.STREAM for each in outcomes),
            "streams_spanning_a_drain": spanning,
            "uploads_spanning_a_signal": spanning_signal(outcomes, site.turns),
            "balancers": {kind: by_kind([o for o in outcomes if o.balancer == kind]) for kind in self._kinds},
            "turns": [turn.to_json() for turn in site.turns],
            "books": {**books, "held": held},
            "affinity": affinity,
        }

    @property
    def _kinds(self) -> list[str]:
        return [balancer.kind for balancer in self._site.balancers]

    def _affinity(self, outcomes: Sequence[Outcome]) -> dict[str, object]:
        """Prompt tokens of pictures that engines had cached, before the first restart and after the last."""
        first_s = min(turn.asked_s for turn in self._site.turns)
        last_s = max(turn.trusted_s for turn in self._site.turns)
        shown = [each for each in outcomes if each.ask.kind is Kind.IMAGE and not each.failure]
        found: dict[str, object] = {}
        for name, of in (
            ("before", [each for each in shown if each.ended_s < first_s]),
            ("during", [each for each in shown if each.ended_s >= first_s and each.began_s <= last_s]),
            ("after", [each for each in shown if each.began_s > last_s]),
        ):
            tokens = sum(each.prompt_tokens for each in of)
            share = round(sum(each.cached_tokens for each in of) / tokens, 3) if tokens else None
            found[name] = {"pictures": len(of), "cached_share": share}
        homes = {each.ask.picture: each.backend for each in reversed(shown)}
        found["at_the_first_home"] = round(
            statistics.mean(each.backend == homes[each.ask.picture] for each in shown), 3
        )
        return found

    def _check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._findings.append(otherwise)

    # --- killed -----------------------------------------------------------------------------------------------------

    async def _kill(self) -> dict[str, object]:
        site, plan = self._site, self._plan
        for engine in site.engines:
            engine.forget()

        def act(load: Load) -> None:
            for turn in range(plan.kills):
                sent(load, 4 * plan.clients, "load before the kill")
                site.kill(turn % REPLICAS)
                self._say(f"gateway {turn % REPLICAS} killed and started anew, {load.sent} requests so far")
            sent(load, 4 * plan.clients, "load after the kill")

        outcomes = await self._under_load(act, 0)
        failed = [each for each in outcomes if each.failure]
        for each in failed:
            near = [d for d in site.deaths if each.began_s <= d.gone_s and each.ended_s >= d.asked_s]
            self._check(bool(near), f"failed beside every kill: {each.balancer} {each.ask.kind}: {each.failure}")
        lines = {str(line["request_id"]) for line in site.exchanges()}
        times = self._times_at_engines()
        self._check(max(times.values(), default=0) <= 1, "an engine was given a request twice")
        held = settled(site.redis)
        return {
            "requests": len(outcomes),
            "in_flight_at_the_kills": sum(
                each.began_s <= death.asked_s <= each.ended_s for each in outcomes for death in site.deaths
            ),
            "failed": len(failed),
            "failures": sorted({f"{each.balancer}: {each.failure[:60]}" for each in failed}),
            "balancers": {kind: by_kind([o for o in outcomes if o.balancer == kind]) for kind in self._kinds},
            "sent_twice": sum(count > 1 for count in times.values()),
            "failed_with_an_access_line": sum(each.ask.request_id in lines for each in failed),
            "held": held,
        }

    def _times_at_engines(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for engine in self._site.engines:
            for record in engine.requests():
                names = {name.lower(): value for name, value in record["headers"]}
                name = names.get("x-request-id", "")
                found[name] = found.get(name, 0) + 1
        return found


def sent(load: Load, count: int, what: str) -> None:
    """Wait until so many more were sent."""
    wanted = load.sent + count
    until(lambda: load.sent >= wanted, what, 600)


def spanned(outcomes: Sequence[Outcome], turns: Sequence[Turn]) -> int:
    """Streams that began before a gateway was told to leave and ended after its listeners had closed (1 s later)."""
    streams = [each for each in outcomes if each.ask.kind is Kind.STREAM]
    return sum(any(s.began_s < t.asked_s and s.ended_s > t.asked_s + 1 for t in turns) for s in streams)


def spanning_signal(outcomes: Sequence[Outcome], turns: Sequence[Turn]) -> int:
    """Uploads that were on their way when a gateway was told to leave."""
    uploads = [each for each in outcomes if each.ask.pieces > 1]
    return sum(any(each.began_s < turn.asked_s < each.ended_s for turn in turns) for each in uploads)


def by_kind(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Counts and milliseconds of each kind of request."""
    found: dict[str, dict[str, float]] = {}
    for kind in Kind:
        of = [each for each in outcomes if each.ask.kind is kind]
        if not of:
            continue
        taken_ms = sorted(1e3 * (each.ended_s - each.began_s) for each in of)
        found[kind.value] = {
            "requests": len(of),
            "failed": sum(bool(each.failure) for each in of),
            "p50_ms": round(taken_ms[len(of) // 2]),
            "p99_ms": round(taken_ms[min(len(of) - 1, len(of) * 99 // 100)]),
        }
    return found
