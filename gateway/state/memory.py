"""Budgets kept in this process: a dictionary of open reservations, sums, and a number per bucket.

Decided here: nothing but how it is kept. Not decided here: what the steps mean (`quota.store`), the arithmetic of rates
(`quota.gcra`), who waits (`budgets`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import MICROSECONDS, charged, refunded, wait_us
from gateway.quota.store import Denied, Granted
from gateway.types import TenantId

_FOR_EVER_US = 2**62
_NOTHING: Mapping[Unit, int] = {}
_EMPTY: Mapping[tuple[Unit, int], int] = {}


class _Entry(NamedTuple):
    """One open reservation: what its charges made of their buckets, and when its lease is over."""

    claim: Claim
    tats_us: tuple[int, ...]
    expires_us: int


class MemoryStore:
    """`quota.store.Store` in plain numbers. Keeps the sums of what is in flight per tenant, and a number per bucket.

    A lease that is not renewed ends what it belongs to; equal leases expire in the order of opening or renewal, so the
    dictionary's own order serves and no heap is needed. Without leases, as a gateway has it that shares its budgets
    with nobody, a reservation lasts until it is ended: it cannot outlive its owner, which is this very process, and a
    request may take as long as it takes.
    """

    def __init__(self, lease_s: float | None = None) -> None:
        if lease_s is not None and lease_s <= 0:
            raise ValueError(f"a lease of {lease_s} s would end before it begins")
        self._lease_us = _FOR_EVER_US if lease_s is None else int(lease_s * MICROSECONDS)
        self._open: dict[ReservationId, _Entry] = {}
        self._in_flight: dict[TenantId, dict[Unit, int]] = {}
        self._tats_us: dict[TenantId, dict[tuple[Unit, int], int]] = {}
        self._latest_us = 0

    def take(self, claim: Claim, reservation: ReservationId, now_us: int) -> Granted | Denied:
        if reservation in self._open:
            raise ValueError(f"reservation {reservation} is open already")
        now_us = self._advance(now_us)
        if self._open:
            self.expire(now_us)
        sums = self._in_flight.get(claim.tenant)
        if sums is None:
            sums = self._in_flight[claim.tenant] = {}
        if not claim.charges:
            hold = _full(claim, sums)
            if hold is not None:
                return Denied(hold, 0, sums.get(hold.unit, 0), (), now_us)
            for each in claim.holds:
                sums[each.unit] = sums.get(each.unit, 0) + each.amount
            self._open[reservation] = _Entry(claim, (), now_us + self._lease_us)
            return Granted((), now_us)
        return self._take_charged(claim, reservation, sums, now_us)

    def _take_charged(
        self, claim: Claim, reservation: ReservationId, sums: dict[Unit, int], now_us: int
    ) -> Granted | Denied:
        buckets = self._tats_us.get(claim.tenant, _EMPTY)
        tats_us = [charged(buckets.get((c.unit, c.rate.period_s), 0), now_us, c.cost_us) for c in claim.charges]
        lacking = _lacking(claim, sums, tats_us, now_us)
        if lacking is not None:
            current = tuple(buckets.get((c.unit, c.rate.period_s), 0) for c in claim.charges)
            return Denied(*lacking, current, now_us)
        for hold in claim.holds:
            sums[hold.unit] = sums.get(hold.unit, 0) + hold.amount
        kept = self._tats_us.setdefault(claim.tenant, {})
        for charge, tat_us in zip(claim.charges, tats_us, strict=True):
            kept[charge.unit, charge.rate.period_s] = tat_us
        granted = Granted(tuple(tats_us), now_us)
        self._open[reservation] = _Entry(claim, granted.tats_us, now_us + self._lease_us)
        return granted

    def settle(self, reservation: ReservationId, costs_us: Sequence[int], now_us: int) -> bool:
        entry = self._close(reservation)
        if entry is None:
            return False
        now_us = self._advance(now_us)
        buckets = self._tats_us.get(entry.claim.tenant, {})
        for charge, charged_tat_us, cost_us in zip(entry.claim.charges, entry.tats_us, costs_us, strict=True):
            surplus_us = charge.cost_us - cost_us
            key = (charge.unit, charge.rate.period_s)
            if surplus_us > 0:
                buckets[key] = refunded(buckets[key], charged_tat_us, now_us, surplus_us)
            elif surplus_us < 0:
                buckets[key] = charged(buckets[key], now_us, -surplus_us)
        return True

    def release(self, reservation: ReservationId, now_us: int) -> bool:
        self._advance(now_us)
        return self._close(reservation) is not None

    def renew(self, reservations: Sequence[ReservationId], now_us: int) -> Sequence[ReservationId]:
        expires_us = self._advance(now_us) + self._lease_us
        gone: list[ReservationId] = []
        for reservation in reservations:
            entry = self._open.pop(reservation, None)
            if entry is None:
                gone.append(reservation)
            else:
                self._open[reservation] = _Entry(entry.claim, entry.tats_us, expires_us)
        return tuple(gone)

    def expire(self, now_us: int) -> Sequence[ReservationId]:
        now_us = self._advance(now_us)
        over: list[ReservationId] = []
        for reservation, entry in self._open.items():
            if entry.expires_us > now_us:
                break
            over.append(reservation)
        for reservation in over:
            self._close(reservation)
        return tuple(over)

    def in_flight(self, tenant: TenantId, unit: Unit) -> int:
        return self._in_flight.get(tenant, _NOTHING).get(unit, 0)

    @property
    def open_count(self) -> int:
        return len(self._open)

    def _close(self, reservation: ReservationId) -> _Entry | None:
        entry = self._open.pop(reservation, None)
        if entry is not None:
            sums = self._in_flight[entry.claim.tenant]
            for hold in entry.claim.holds:
                sums[hold.unit] -= hold.amount
        return entry

    def _advance(self, now_us: int) -> int:
        self._latest_us = max(self._latest_us, now_us)
        return self._latest_us


def _lacking(
    claim: Claim, sums: Mapping[Unit, int], tats_us: Sequence[int], now_us: int
) -> tuple[Hold | Charge, int, int] | None:
    """The limit that a refusal names, the longest wait of all charges, what is in flight; None where all have room."""
    longest_us = 0
    slowest: Charge | None = None
    for charge, tat_us in zip(claim.charges, tats_us, strict=True):
        this_us = wait_us(tat_us, now_us, charge.rate.capacity_us)
        if this_us > longest_us:
            longest_us, slowest = this_us, charge
    hold = _full(claim, sums)
    if hold is not None:
        return hold, longest_us, sums.get(hold.unit, 0)
    return None if slowest is None else (slowest, longest_us, 0)


def _full(claim: Claim, sums: Mapping[Unit, int]) -> Hold | None:
    """The first hold without room."""
    for hold in claim.holds:
        if hold.limit is not None and sums.get(hold.unit, 0) + hold.amount > hold.limit:
            return hold
    return None
