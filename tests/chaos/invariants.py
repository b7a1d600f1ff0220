"""What must hold after every fault, whatever the fault was: one checker for all.

Decided here: the invariants and their bounds. A violation is a sentence. Three groups: of answers (each a right one
or one documented error that the fault excuses, none executed twice, none refused that could have been served), of
what is left (nothing held, no descriptor, worker or zombie too many, memory within its bound), and of the processes
(alive, ready, no traceback). Not decided here: what a fault excuses (``faults``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.chaos.answers import STREAMS, Answer, Kind, flaw
from tests.chaos.fleet import WORKERS, Fleet
from tests.chaos.overheard import Ledger
from tests.chaos.parts import GatewayPart

MIB = 1024 * 1024
# What may have run in a backend that then was lost; told once and never sent again.
MAY_HAVE_RUN = frozenset({"backend_lost", "backend_timeout"})
# Where the dialect has no place for our code, a stream's error has the type of one.
_STREAM_TYPES = frozenset({"api_error", "overloaded_error", "timeout_error"})
_SPARES = 1
_DESCRIPTORS_PER_PROCESS = 6
_REST_S = 120.0
# Gauges of what requests hold. All are zero when nobody asks.
_HELD = (
    "requests_inflight", "budget_reserved_tokens", "budget_waiting_requests", "backend_inflight", "body_memory_bytes",
    "pool_busy", "pool_queued", "pool_reserved_bytes",
)  # fmt: skip
_MOST_TOLD = 12


@dataclass(frozen=True, slots=True)
class Excuse:
    """What a fault excuses. ``codes``: errors it may cause. ``losses``: connections may break. ``refusals``: nobody may
    listen for a while. ``until_s``: requests asked after that moment have no excuse."""

    codes: frozenset[str] = frozenset()
    losses: bool = False
    refusals: bool = False
    until_s: float = float("inf")


NO_EXCUSE = Excuse()


def judge(answers: Iterable[Answer], ledger: Ledger, excuse: Excuse) -> list[str]:
    """Violations among answers; the first few of them, with how many more there are."""
    answers = list(answers)
    found = [told for answer in answers if (told := _judge_one(answer, ledger, excuse))]
    # What a gateway has written may be lost with its connection before anybody heard it, but not more often than that.
    unheard = [each for each in answers if each.code in MAY_HAVE_RUN and not ledger.reached(each.question.request_id)]
    if len(unheard) > ledger.ended:
        found.append(f"{len(unheard)} told that they may have run, but no backend ever saw them")
    found += [f"{request_id}: sent whole to a backend more than once" for request_id in ledger.executed_twice()]
    if len(found) > _MOST_TOLD:
        return [*found[:_MOST_TOLD], f"and {len(found) - _MOST_TOLD} more of the kind"]
    return found


def _judge_one(answer: Answer, ledger: Ledger, excuse: Excuse) -> str | None:
    told = f"{answer.question.request_id} ({answer.question.kind})"
    excused = answer.asked_s < excuse.until_s
    if answer.lost is not None:
        return None if excused and _may_be_lost(answer, ledger, excuse) else f"{told}: lost, {answer.lost}"
    if wrong := flaw(answer):
        return f"{told}: {wrong}"
    if answer.succeeded:
        return None if len(ledger.runs(answer.question.request_id)) == 1 else f"{told}: answered, but no backend ran it"
    return _judge_error(answer, excuse, excused=excused, told=told)


def _may_be_lost(answer: Answer, ledger: Ledger, excuse: Excuse) -> bool:
    """A gateway that dies breaks connections; one that lives cuts a stream whose backend was lost within an event, so
    that half an event is not taken for a whole one (docs/behaviour.md)."""
    if answer.lost is not None and answer.lost.startswith("refused"):
        return excuse.refusals
    has_begun = answer.status == 200 and answer.question.kind in STREAMS
    was_cut = has_begun and bool(excuse.codes & MAY_HAVE_RUN) and ledger.reached(answer.question.request_id)
    return excuse.losses or was_cut


def _judge_error(answer: Answer, excuse: Excuse, *, excused: bool, told: str) -> str | None:
    code = answer.code or ""
    if answer.question.kind is Kind.BUDGET and code == "in_flight_exhausted":
        return None
    is_stream_error = answer.status == 200
    known = code in excuse.codes or (is_stream_error and code in _STREAM_TYPES and bool(excuse.codes & MAY_HAVE_RUN))
    if not excused or not known:
        return f"{told}: {code} without an excuse: {answer.body[-200:]!r}"
    return None


@dataclass(frozen=True, slots=True)
class Standing:
    """What one gateway has open and takes while nobody asks."""

    descriptors: int
    memory_bytes: int


def standing(gateway: GatewayPart) -> Standing:
    return Standing(gateway.family.open_files(), gateway.family.memory_bytes())


def memory_limit_bytes(baseline: Standing) -> int:
    """Caches fill and heaps keep what they had once: half as much again, and 96 MiB."""
    return baseline.memory_bytes + baseline.memory_bytes // 2 + 96 * MIB


def left_over(fleet: Fleet, baselines: Sequence[Standing]) -> list[str]:
    """What is still held or open when nobody asks any more, given time to come to rest."""
    stop_at = time.monotonic() + _REST_S
    while True:
        found = _left_over_now(fleet, baselines)
        if not found or time.monotonic() > stop_at:
            return found
        time.sleep(0.1)


def _left_over_now(fleet: Fleet, baselines: Sequence[Standing]) -> list[str]:
    found = []
    for gateway, baseline in zip(fleet.gateways, baselines, strict=True):
        found += [f"{gateway.name}: {told}" for told in _left_in(gateway, baseline)]
    for backend in fleet.backends:
        if running := backend.running_requests():
            found.append(f"{backend.name} still works at {running} requests")
    return found + _left_in_redis(fleet)


def _left_in(gateway: GatewayPart, baseline: Standing) -> list[str]:
    samples = gateway.samples()
    if not samples:
        return ["tells no metrics"]
    totals = {name: sum(value for found, _, value in samples if found == name) for name in _HELD}
    found = [f"{name} is {total:g}" for name, total in totals.items() if total]
    now = standing(gateway)
    most = baseline.descriptors + _DESCRIPTORS_PER_PROCESS * gateway.processes
    if now.descriptors > most:
        found.append(f"{now.descriptors} descriptors where {baseline.descriptors} were open before")
    if now.memory_bytes > memory_limit_bytes(baseline):
        limit = memory_limit_bytes(baseline) // MIB
        found.append(f"{now.memory_bytes // MIB} MiB of memory, more than {limit} MiB")
    # Several processes share the workers that one would have.
    workers, wanted = len(gateway.workers()), WORKERS + _SPARES * gateway.processes
    if workers != wanted:
        found.append(f"{workers} image workers instead of {wanted}")
    zombies = set(gateway.family.members()) - set(gateway.family.members(with_zombies=False))
    if zombies:
        found.append(f"zombies: {sorted(zombies)}")
    if len(gateway.serving()) != gateway.processes:
        found.append(f"{len(gateway.serving())} processes serve instead of {gateway.processes}")
    return found


def _left_in_redis(fleet: Fleet) -> list[str]:
    if fleet.redis is None:
        return []
    return [
        f"Redis still holds {key}: {held}"
        for key in fleet.redis.keys()  # noqa: SIM118 - a server, no dict
        if key.endswith((":sums", ":held")) and (held := fleet.redis.hash(key))
    ]


def of_processes(fleet: Fleet) -> list[str]:
    """What processes say of themselves: all live and ready, none with a traceback or a bug of its own."""
    found = []
    for gateway in fleet.gateways:
        if not gateway.is_live():
            found.append(f"{gateway.name} is not live")
        if not gateway.is_ready():
            found.append(f"{gateway.name} is not ready")
        if "Traceback" in gateway.said:
            found.append(f"{gateway.name} left a traceback: {gateway.said[-1500:]}")
        if bugs := gateway.metric("errors_total", 'code="gateway_bug"'):
            found.append(f"{gateway.name} counts {bugs:g} bugs of its own")
    return found
