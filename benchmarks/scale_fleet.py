"""A fleet past one machine, simulated: gateways that come and go, and a zone that is lost; the real decision, registry
and beliefs (`routed_policies.Ours`), engines of `routed`.

A zone takes a third of the engines and of the gateways, at once. What was on them is lost. Of each dead engine every
gateway learns from the first connection that is refused; that request goes elsewhere. Gateways that come anew know
nothing: their index is empty. Decided here: what is counted, in slices of the run.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.routed import STEP_S, Engine, Request
from benchmarks.routed_loads import load_of
from benchmarks.routed_policies import Ours

# So much of what the fleet can do without any cache: two thirds of it must carry the whole after a zone is lost.
_LOAD = 0.55
_SCRAPE_S = 5.0
_SLICES = 40
# Back to normal: hits within so many points, p99 within so much, of what they were before.
_POINTS, _P99_FACTOR = 2.0, 1.25
_WARM = 0.3  # of the run, before which nothing counts


@dataclass(frozen=True, slots=True)
class Gone:
    """One request as it went: ``computed_s`` of ``full_s`` were not cached. ``resent``: refused connections before."""

    at_s: float
    first_token_s: float
    ends_s: float
    computed_s: float
    full_s: float
    resent: int
    engine: int
    gateway: int


class _Fleet:
    """Engines, gateways, and who of them is there."""

    def __init__(self, backends: int, gateways: int) -> None:
        self.engines = [Engine() for _ in range(backends)]
        self.gateways = [Refusable(backends, seed) for seed in range(gateways)]
        self.dead: set[int] = set()
        self.there = list(range(gateways))

    def scrape(self, now_s: float) -> None:
        for number in self.there:
            self.gateways[number].scrape(now_s, self.engines)

    def lose_zone(self) -> None:
        """Every third engine and gateway."""
        self.dead = set(range(0, len(self.engines), 3))
        self.there = [number for number in self.there if number % 3]

    def renew(self, number: int) -> None:
        """A gateway that knows nothing takes the place of one."""
        self.gateways[number] = Refusable(len(self.engines), 1_000 + number)

    def serve(self, request: Request, number: int) -> Gone:
        gateway = self.gateways[number]
        chosen, resent = gateway.choose(request), 0
        while chosen in self.dead:
            gateway.refused(chosen)
            resent += 1
            chosen = gateway.choose(request)
        served = self.engines[chosen].serve(request)
        gateway.sent(request, chosen, served)
        ends_s = request.at_s + served.first_token_s + request.output_tokens * STEP_S
        return Gone(
            request.at_s, served.first_token_s, ends_s, served.computed_s, request.full_s, resent, chosen, number
        )


class Refusable(Ours):
    """The gateway, which marks down whom it cannot reach."""

    def refused(self, number: int) -> None:
        """Nobody listens there: as the outcome of a refused connection does, and the account is closed."""
        assert self._last is not None
        self._last[1].close()
        self._registry[self._names[number]].mark_down()


def _requests(workload: str, count: int, backends: int) -> list[Request]:
    made = load_of(workload, count, backends)
    usual = 0.75 if workload == "unique" else 1.1
    return [replace(request, at_s=request.at_s * usual / _LOAD) for request in made]


def zone_loss(workload: str, count: int, backends: int, gateways: int) -> dict[str, object]:
    """A third is lost in the middle of the run."""
    requests = _requests(workload, count, backends)
    lost_at_s = requests[len(requests) * 6 // 10].at_s
    fleet, dice, gone, next_scrape_s = _Fleet(backends, gateways), random.Random(3), list[Gone](), 0.0
    for request in requests:
        if request.at_s >= lost_at_s and not fleet.dead:
            fleet.lose_zone()
        if request.at_s >= next_scrape_s:
            fleet.scrape(request.at_s)
            next_scrape_s = request.at_s + _SCRAPE_S
        gone.append(fleet.serve(request, dice.choice(fleet.there)))
    before = [each for each in gone if each.at_s < lost_at_s]
    flying = [each for each in before if each.ends_s > lost_at_s]
    lost = [each for each in flying if each.engine in fleet.dead or each.gateway % 3 == 0]
    after = [each for each in gone if each.at_s >= lost_at_s]
    return {
        "requests": len(requests),
        "simulated_s": round(requests[-1].at_s),
        "in_flight_at_the_loss": len(flying),
        "lost_with_the_zone": len(lost),
        "resent_after_a_refused_connection": sum(each.resent > 0 for each in after),
        **_phases(before, after, lost_at_s),
    }


def restarts(workload: str, count: int, backends: int, gateways: int) -> dict[str, object]:
    """Every gateway is replaced by one that knows nothing, one after the other, over a tenth of the run."""
    requests = _requests(workload, count, backends)
    first, last = len(requests) * 6 // 10, len(requests) * 7 // 10
    fleet, dice, gone, next_scrape_s = _Fleet(backends, gateways), random.Random(3), list[Gone](), 0.0
    renewed = 0
    for number, request in enumerate(requests):
        while renewed < gateways and number >= first + (last - first) * renewed // gateways:
            fleet.renew(renewed)
            fleet.gateways[renewed].scrape(request.at_s, fleet.engines)
            renewed += 1
        if request.at_s >= next_scrape_s:
            fleet.scrape(request.at_s)
            next_scrape_s = request.at_s + _SCRAPE_S
        gone.append(fleet.serve(request, dice.choice(fleet.there)))
    return {
        "requests": len(requests),
        "simulated_s": round(requests[-1].at_s),
        **_phases(gone[:first], gone[first:], requests[first].at_s),
    }


def _phases(before: Sequence[Gone], after: Sequence[Gone], event_s: float) -> dict[str, object]:
    """Hits and p99 before, at their worst, at the end; and how long until they were back."""
    usual = _facts(before[int(len(before) * _WARM) :])
    size = max(1, (len(before) + len(after)) // _SLICES)
    slices = [after[start : start + size] for start in range(0, len(after) - size + 1, size)]
    told = [_facts(each) for each in slices]
    is_back = [
        each["hit_share"] >= usual["hit_share"] - _POINTS / 100
        and each["ttft_p99_s"] <= max(usual["ttft_p99_s"] * _P99_FACTOR, usual["ttft_p99_s"] + 0.05)
        for each in told
    ]
    away = next((at for at in range(len(told)) if all(is_back[at:])), len(told))
    return {
        "before": usual,
        "worst_slice": {
            "hit_share": min(each["hit_share"] for each in told),
            "ttft_p99_s": max(each["ttft_p99_s"] for each in told),
        },
        "at_the_end": told[-1],
        "slice_s": round(slices[0][-1].at_s - slices[0][0].at_s, 1),
        "back_after_s": None if away == len(told) else round(slices[away][0].at_s - event_s, 1),
    }


def _facts(gone: Sequence[Gone]) -> dict[str, float]:
    full_s = sum(each.full_s for each in gone)
    firsts_s = [each.first_token_s for each in gone]
    return {
        "hit_share": round(1 - sum(each.computed_s for each in gone) / full_s, 4),
        "ttft_p50_s": round(statistics.median(firsts_s), 3),
        "ttft_p99_s": round(statistics.quantiles(firsts_s, n=100)[98], 3),
    }
