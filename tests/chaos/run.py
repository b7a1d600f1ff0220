"""One fault under load, from the first request before it to the last invariant after it.

Decided here: the order. Load runs; the fault strikes and is undone while it runs; the system is mended; from the
moment it is whole again every request must succeed; the load stops; everything comes to rest; the invariants are
checked. How long the first success took from the moment of mending, and how long wholeness, is measured against the
fault's bound, less the time in which a part that was ready waited for a CPU, as the kernel tells it: the promise is the
gateway's, and not that of whoever else works on the machine.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from tests.chaos.answers import Answer
from tests.chaos.fleet import SINGLE, Fleet, Shape
from tests.chaos.invariants import MIB, NO_EXCUSE, Excuse, Standing, judge, left_over, of_processes, standing
from tests.chaos.load import Load
from tests.chaos.parts import until
from tests.chaos.waiting import Waiting

BEFORE, AFTER = 12, 18  # answers without any fault, before and after it
_SETTLE_S = 2.0
_WHOLE = 6
_FIRST, _ALL = "the first success", "wholeness"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong. ``strike`` does it, waits until it was felt, and undoes it unless ``Fleet.mend`` does.

    ``bound_s``: from the mending to the first success; to wholeness it may take ``_WHOLE`` times as long.
    """

    name: str
    strike: Callable[[Strike], None]
    shape: Shape = SINGLE
    excuse: Excuse = NO_EXCUSE
    bound_s: float = 10.0
    is_short: bool = False
    lanes: int = 6


@dataclass(slots=True)
class Strike:
    """What a fault has at hand."""

    fleet: Fleet
    load: Load
    seed: int
    notes: list[str] = field(default_factory=list)

    def answers(self, count: int) -> None:
        """Wait until so many more requests were answered, whatever was answered."""
        wanted = len(self.load.answers) + count
        until(lambda: len(self.load.answers) >= wanted, f"{count} answers")

    def asked(self, count: int) -> None:
        """Wait until so many more requests were asked."""
        wanted = self.load.asked + count
        until(lambda: self.load.asked >= wanted, f"{count} requests")

    def during(self, seconds: float) -> None:
        """The fault lasts so long."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Report:
    """What one fault did.

    ``started_s``: how long the slowest gateway took from its start to ready; ``recovered_s`` and ``whole_s`` are
    ``None`` when that never came.
    """

    name: str
    shape: str
    started_s: float
    asked: int
    succeeded: int
    errors: dict[str, int]
    recovered_s: float | None
    whole_s: float | None
    bound_s: float
    descriptors: tuple[int, int]
    memory_mib: tuple[int, int]
    seconds: float
    notes: tuple[str, ...]
    violations: tuple[str, ...]


def baselines_of(fleet: Fleet, seed: int) -> list[Standing]:
    """How the gateways stand once they have worked and are at rest."""
    load, running = _begin(fleet, f"warm{seed}", seed, 6)
    until(lambda: len(load.answers) >= 60, "a warm system")
    load.stop()
    running.result()
    time.sleep(_SETTLE_S)
    return [standing(gateway) for gateway in fleet.gateways]


def _begin(fleet: Fleet, name: str, seed: int, lanes: int) -> tuple[Load, Future[None]]:
    load = Load(fleet.target, name, seed, lanes)
    return load, fleet.stage.begin(load.run())


def run(fleet: Fleet, fault: Fault, baselines: Sequence[Standing], seed: int) -> Report:
    """Strike, mend, check."""
    began_s = time.monotonic()
    load, running = _begin(fleet, fault.name, seed, fault.lanes)
    strike = Strike(fleet, load, seed)
    violations: list[str] = []
    recovered_s: float | None = None
    whole_s: float | None = None
    own_s: dict[str, float] = {}
    excused_until_s = float("inf")
    try:
        fleet.count_anew()
        strike.answers(BEFORE)
        fault.strike(strike)
        mended_s = fleet.mend()
        waiting = Waiting(fleet.pids)
        recovered_s = until(lambda: _first_success_s(load.answers, mended_s), "a success after the fault")
        assert recovered_s is not None, "until gives true values only"
        own_s[_FIRST] = recovered_s - waiting.so_far_s()
        fleet.until_whole()
        excused_until_s = time.monotonic()
        whole_s = excused_until_s - mended_s
        own_s[_ALL] = whole_s - waiting.so_far_s()
        strike.answers(AFTER)
    except (TimeoutError, AssertionError, OSError) as error:
        violations.append(f"{type(error).__name__}: {error}")
        fleet.mend()
    load.stop()
    running.result()
    violations += judge(load.answers, fleet.ledger, replace(fault.excuse, until_s=excused_until_s))
    violations += left_over(fleet, baselines)
    violations += of_processes(fleet)
    for what, bound_s in ((_FIRST, fault.bound_s), (_ALL, _WHOLE * fault.bound_s)):
        if own_s.get(what, 0.0) > bound_s:
            violations.append(f"{what} took {own_s[what]:.1f} s beside waiting for a CPU, more than {bound_s:g} s")
    return _report(fleet, fault, load, baselines, recovered_s, whole_s, time.monotonic() - began_s, strike, violations)


def _first_success_s(answers: Sequence[Answer], since_s: float) -> float | None:
    """How long after that moment the first success of a request came that was asked after it."""
    found = [answer.ended_s for answer in answers if answer.asked_s >= since_s and answer.succeeded]
    return max(min(found) - since_s, 1e-3) if found else None


def _report(
    fleet: Fleet,
    fault: Fault,
    load: Load,
    baselines: Sequence[Standing],
    recovered_s: float | None,
    whole_s: float | None,
    seconds: float,
    strike: Strike,
    violations: list[str],
) -> Report:
    now = [standing(gateway) for gateway in fleet.gateways]
    errors = Counter(answer.code or "" for answer in load.answers if answer.lost is None and not answer.succeeded)
    errors += Counter(answer.lost.partition(":")[0] for answer in load.answers if answer.lost is not None)
    return Report(
        name=fault.name,
        shape=name_of(fault.shape),
        started_s=max(gateway.started_in_s for gateway in fleet.gateways),
        asked=len(load.answers),
        succeeded=sum(answer.succeeded for answer in load.answers),
        errors=dict(sorted(errors.items())),
        recovered_s=recovered_s,
        whole_s=whole_s,
        bound_s=fault.bound_s,
        descriptors=(sum(each.descriptors for each in baselines), sum(each.descriptors for each in now)),
        memory_mib=(
            sum(each.memory_bytes for each in baselines) // MIB, sum(each.memory_bytes for each in now) // MIB
        ),
        seconds=seconds,
        notes=tuple(strike.notes),
        violations=tuple(violations),
    )  # fmt: skip


def name_of(shape: Shape) -> str:
    """A word for a shape, for people."""
    words = []
    if shape.replicas > 1:
        words.append(f"{shape.replicas} replicas")
    if shape.processes > 1:
        words.append(f"{shape.processes} processes")
    words.append("Redis" if shape.has_redis else "alone" if not words else "split")
    return ", ".join(words)
