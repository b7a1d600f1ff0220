"""How long a claim would wait: what is known here of a tenant's budgets, and what waits for them already.

Decided here: the arithmetic. A full budget drains at what is in flight / the mean time it is held (`wait`); a rate
drains by itself, so its wait is exact but for those who stand before. All times are of one local clock in microseconds;
buckets that a store tells by its own clock are kept as what stood in them. Not decided here: who is refused for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.quota.claim import Charge, Claim, Unit
from gateway.quota.gcra import MICROSECONDS
from gateway.quota.standing import Standing
from gateway.quota.store import Denied, Granted
from gateway.quota.wait import HoldTime, expected_wait_s

_Bucket: TypeAlias = tuple[Unit, int]


@dataclass(slots=True)
class Outlook:
    """One tenant: sums of what it holds and of what waits, and its buckets as they were last seen."""

    held: dict[Unit, int] = field(default_factory=dict)
    waiting: dict[Unit, int] = field(default_factory=dict)
    waiting_us: dict[_Bucket, int] = field(default_factory=dict)
    drained_us: dict[_Bucket, int] = field(default_factory=dict)
    hold_time: HoldTime = field(default_factory=HoldTime)

    def opened(self, claim: Claim) -> None:
        for hold in claim.holds:
            self.held[hold.unit] = self.held.get(hold.unit, 0) + hold.amount

    def closed(self, claim: Claim, held_us: int) -> None:
        for hold in claim.holds:
            self.held[hold.unit] -= hold.amount
        self.hold_time.observe(claim.held(Unit.KV_TOKENS), held_us / MICROSECONDS)

    def joined(self, claim: Claim) -> None:
        self._wait(claim, 1)

    def left(self, claim: Claim) -> None:
        self._wait(claim, -1)

    def saw(self, charges: Sequence[Charge], outcome: Granted | Denied, now_us: int) -> None:
        """Remember the buckets that a store told."""
        for charge, tat_us in zip(charges, outcome.tats_us, strict=True):
            self.drained_us[_bucket(charge)] = now_us + tat_us - outcome.now_us

    def standing(self, charges: Sequence[Charge], now_us: int, wall_s: float) -> Standing:
        """These charges' buckets as they were last seen."""
        return Standing(charges, [self.drained_us.get(_bucket(charge), 0) for charge in charges], now_us, wall_s)

    def own_wait_s(self, claim: Claim, denied: Denied | None, now_us: int) -> float | None:
        """Until the tenant's own limits have room for this claim, which counts as waiting; None where nobody knows."""
        waits = [*self._hold_waits_s(claim, denied), *self._rate_waits_s(claim, now_us)]
        known = [wait_s for wait_s in waits if wait_s is not None]
        return max(known) if known else None

    def _hold_waits_s(self, claim: Claim, denied: Denied | None) -> Iterable[float | None]:
        for hold in claim.holds:
            if hold.limit is None:
                continue
            in_use = self.held.get(hold.unit, 0)
            if denied is not None and denied.limit == hold:
                in_use = denied.in_use  # a shared store knows what the others hold
            need = self.waiting.get(hold.unit, 0) + in_use - hold.limit
            yield expected_wait_s(need, in_use, self.hold_time.mean_s)

    def _rate_waits_s(self, claim: Claim, now_us: int) -> Iterable[float]:
        for charge in claim.charges:
            key = _bucket(charge)
            level_us = max(0, self.drained_us.get(key, 0) - now_us)
            over_us = level_us + self.waiting_us.get(key, 0) - charge.rate.capacity_us
            yield max(0, over_us) / MICROSECONDS

    def _wait(self, claim: Claim, sign: int) -> None:
        for hold in claim.holds:
            self.waiting[hold.unit] = self.waiting.get(hold.unit, 0) + sign * hold.amount
        for charge in claim.charges:
            key = _bucket(charge)
            self.waiting_us[key] = self.waiting_us.get(key, 0) + sign * charge.cost_us


def _bucket(charge: Charge) -> _Bucket:
    return (charge.unit, charge.rate.period_s)
