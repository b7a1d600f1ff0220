"""`quota.store.Store` for one of several processes that share nothing: it decides by its part of every limit.

Decided here: what a part is. Not decided here: how it is kept (``memory``), how many processes there are (``config``).

    in flight   limit / processes, rounded down. The only request of its tenant here passes up to the whole limit, else
                one that is larger than the part could never be served.
    rates       a bucket drains at rate / processes, so a charge costs ``processes`` times its time; one that is larger
                than the part that may come at once passes when the bucket is empty.

All processes together stay within every rate in the long run, and within every limit in flight that is at least
``processes`` times what a tenant's largest request holds; below that each may have one such request at a time. It is
the rule of replicas whose shared store is away (``book``).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.quota.claim import Charge, Claim, Hold, ReservationId
from gateway.quota.gcra import Rate
from gateway.quota.store import Denied, Granted
from gateway.state.memory import MemoryStore


class SplitStore:
    """A store in memory that knows ``processes`` of its kind, at least 2."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._kept = MemoryStore()

    def take(self, claim: Claim, reservation: ReservationId, now_us: int) -> Granted | Denied:
        part = claim._replace(
            holds=tuple(self._hold(claim, hold) for hold in claim.holds),
            charges=tuple(self._charge(charge) for charge in claim.charges),
        )
        outcome = self._kept.take(part, reservation, now_us)
        if isinstance(outcome, Granted):
            return outcome
        wholes: list[Hold | Charge] = [*claim.holds, *claim.charges]
        parts: list[Hold | Charge] = [*part.holds, *part.charges]
        limit = next(whole for whole, own in zip(wholes, parts, strict=True) if own is outcome.limit)
        return Denied(limit, outcome.wait_us, outcome.in_use, outcome.tats_us, outcome.now_us)

    def settle(self, reservation: ReservationId, costs_us: Sequence[int], now_us: int) -> bool:
        return self._kept.settle(reservation, [cost_us * self._processes for cost_us in costs_us], now_us)

    def release(self, reservation: ReservationId, now_us: int) -> bool:
        return self._kept.release(reservation, now_us)

    def renew(self, reservations: Sequence[ReservationId], now_us: int) -> Sequence[ReservationId]:
        return self._kept.renew(reservations, now_us)

    def expire(self, now_us: int) -> Sequence[ReservationId]:
        return self._kept.expire(now_us)

    def _hold(self, claim: Claim, hold: Hold) -> Hold:
        if hold.limit is None:
            return hold
        part = hold.limit // self._processes
        if self._kept.in_flight(claim.tenant, hold.unit) == 0 and hold.amount <= hold.limit:
            part = max(part, hold.amount)
        return hold._replace(limit=part)

    def _charge(self, charge: Charge) -> Charge:
        """The same capacity in time, ``processes`` times the cost."""
        rate = charge.rate
        burst = max(rate.burst_amount // self._processes, charge.amount if charge.is_possible else 1, 1)
        return charge._replace(rate=Rate(rate.amount, rate.period_s * self._processes, burst))
