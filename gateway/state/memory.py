"""Budgets kept in this process, on one event loop: waiters are futures, releases wake the next one synchronously.

Decided here: who is refused at once (what could never fit, what would wait beyond its timeout) and what a refusal says.
Not decided here: limits (`policy`), order and arithmetic (`quota`). Nothing is kept for a waiter that was cancelled or
timed out; a reservation granted to a waiter in the moment of its cancellation is released again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.errors import KvBudgetExhausted, TooManyTokens
from gateway.ports import Clock
from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import MICROSECONDS, charged, refunded, wait_us
from gateway.quota.ledger import Closed, Ledger
from gateway.quota.queue import AdmissionQueue, Room, Ticket, TicketNumber
from gateway.quota.store import Denied, Granted
from gateway.quota.wait import HoldTime, expected_wait_s, retry_after_s
from gateway.types import TenantId

# Longer than any request may last, so only what a bug lost ever expires here; a shared store has shorter ones, renewed.
_LEASE_S = 3_600.0
_NOTHING: Mapping[Unit, int] = {}
_EMPTY: Mapping[tuple[Unit, int], int] = {}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One open reservation: what its charges made of their buckets, and when its lease is over."""

    claim: Claim
    tats_us: tuple[int, ...]
    expires_us: int


class MemoryStore:
    """`quota.store.Store` in plain numbers. Keeps the sums of what is in flight per tenant, and a number per bucket.

    A lease that is not renewed ends what it belongs to; equal leases expire in the order of opening or renewal, so the
    dictionary's own order serves and no heap is needed.
    """

    def __init__(self, lease_s: float = _LEASE_S) -> None:
        if lease_s <= 0:
            raise ValueError(f"a lease of {lease_s} s would end before it begins")
        self._lease_us = int(lease_s * MICROSECONDS)
        self._open: dict[ReservationId, _Entry] = {}
        self._in_flight: dict[TenantId, dict[Unit, int]] = {}
        self._tats_us: dict[TenantId, dict[tuple[Unit, int], int]] = {}
        self._latest_us = 0

    def take(self, claim: Claim, reservation: ReservationId, now_us: int) -> Granted | Denied:
        if reservation in self._open:
            raise ValueError(f"reservation {reservation} is open already")
        if self._open:
            self.expire(now_us)
        now_us = self._advance(now_us)
        sums = self._in_flight.get(claim.tenant, _NOTHING)
        buckets = self._tats_us.get(claim.tenant, _EMPTY)
        tats_us = [charged(buckets.get((c.unit, c.rate.period_s), 0), now_us, c.cost_us) for c in claim.charges]
        lacking = _lacking(claim, sums, tats_us, now_us)
        if lacking is not None:
            current = tuple(buckets.get((c.unit, c.rate.period_s), 0) for c in claim.charges)
            return Denied(*lacking, current, now_us)
        self._hold(claim)
        if tats_us:
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

    def _hold(self, claim: Claim) -> None:
        sums = self._in_flight.get(claim.tenant)
        if sums is None:
            sums = self._in_flight[claim.tenant] = {}
        for hold in claim.holds:
            sums[hold.unit] = sums.get(hold.unit, 0) + hold.amount

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
    for hold in claim.holds:
        in_use = sums.get(hold.unit, 0)
        if hold.limit is not None and in_use + hold.amount > hold.limit:
            return hold, longest_us, in_use
    return None if slowest is None else (slowest, longest_us, 0)


class MemoryBudgets:
    """`ports.Budgets` for a single process.

    ``total_kv_tokens`` bounds all tenants together (None: no such bound); ``jitter`` returns numbers in [0, 1).
    """

    def __init__(
        self,
        clock: Clock,
        jitter: Callable[[], float],
        *,
        total_kv_tokens: int | None = None,
        lease_s: float = _LEASE_S,
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._total_limit = total_kv_tokens
        self._ledger = Ledger(lease_s)
        self._queue = AdmissionQueue()
        self._hold = HoldTime()
        self._hold_of: dict[TenantId, HoldTime] = {}
        self._waiters: dict[TicketNumber, asyncio.Future[MemoryReservation]] = {}

    async def reserve(
        self, tenant: TenantId, kv_tokens: int, limit_kv_tokens: int | None, queue_timeout_s: float
    ) -> MemoryReservation:
        """Take tokens, waiting up to ``queue_timeout_s``.

        Raises TooManyTokens for what no waiting could make fit, KvBudgetExhausted (with Retry-After) for what did not
        or will not fit in time. Without any limit the tokens are still accounted.
        """
        self._refuse_impossible(kv_tokens, limit_kv_tokens)
        if (reservation := self._take_at_once(tenant, kv_tokens, limit_kv_tokens)) is not None:
            return reservation
        waiter: asyncio.Future[MemoryReservation] = asyncio.get_running_loop().create_future()
        ticket = self._queue.join(tenant, kv_tokens, limit_kv_tokens)
        self._waiters[ticket.number] = waiter
        self._wake()
        if waiter.done():
            return waiter.result()
        return await self._wait(ticket, waiter, queue_timeout_s)

    def _take_at_once(self, tenant: TenantId, kv_tokens: int, limit_kv_tokens: int | None) -> MemoryReservation | None:
        """The usual case, without a ticket: nobody waits and there is room."""
        if self._queue.has_waiting:
            return None
        now_s = self._clock.now_s()
        for closed in self._ledger.expire(now_s):
            self._observe(closed)
        ledger = self._ledger
        if limit_kv_tokens is not None and ledger.inflight_kv_tokens(tenant) + kv_tokens > limit_kv_tokens:
            return None
        if self._total_limit is not None and ledger.total_kv_tokens + kv_tokens > self._total_limit:
            return None
        number = self._queue.serve_at_once(tenant, kv_tokens)
        if number is None:
            return None
        reservation = ReservationId(number)
        ledger.open(reservation, tenant, kv_tokens, now_s)
        return MemoryReservation(self, reservation)

    def inflight_kv_tokens(self, tenant: TenantId) -> int:
        return self._ledger.inflight_kv_tokens(tenant)

    def waiting_count(self, tenant: TenantId) -> int:
        """Requests of this tenant that stand in the queue."""
        return self._queue.waiting_count(tenant)

    def _refuse_impossible(self, kv_tokens: int, limit_kv_tokens: int | None) -> None:
        limits = [limit for limit in (limit_kv_tokens, self._total_limit) if limit is not None]
        if limits and kv_tokens > min(limits):
            message = f"The request may need {kv_tokens} KV tokens, more than the whole budget of {min(limits)}."
            raise TooManyTokens(message, rule="kv_tokens_in_flight")

    async def _wait(
        self, ticket: Ticket, waiter: asyncio.Future[MemoryReservation], queue_timeout_s: float
    ) -> MemoryReservation:
        timer: asyncio.TimerHandle | None = None
        try:
            expected_s = self._expected_wait_s(ticket)
            if queue_timeout_s <= 0 or (expected_s is not None and expected_s > queue_timeout_s):
                raise self._exhausted(ticket, expected_s, queue_timeout_s)
            timer = asyncio.get_running_loop().call_later(queue_timeout_s, self._give_up, ticket, queue_timeout_s)
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                waiter.result().release()  # granted, but nobody is left to own it
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._forget(ticket)

    def _give_up(self, ticket: Ticket, queue_timeout_s: float) -> None:
        waiter = self._waiters.get(ticket.number)
        if waiter is not None and not waiter.done():
            waiter.set_exception(self._exhausted(ticket, self._expected_wait_s(ticket), queue_timeout_s))
            self._forget(ticket)

    def _forget(self, ticket: Ticket) -> None:
        self._waiters.pop(ticket.number, None)
        if self._queue.leave(ticket):
            self._wake()  # it may have been what the others waited behind

    def _wake(self) -> None:
        """Admit everyone who fits now. Tickets of waiters that are already done are thrown away."""
        now_s = self._clock.now_s()
        for closed in self._ledger.expire(now_s):
            self._observe(closed)
        while (ticket := self._queue.admit(self._room)) is not None:
            waiter = self._waiters.pop(ticket.number, None)
            if waiter is None or waiter.done():
                continue
            reservation = ReservationId(ticket.number)
            self._ledger.open(reservation, ticket.tenant, ticket.kv_tokens, now_s)
            waiter.set_result(MemoryReservation(self, reservation))

    def _room(self, ticket: Ticket) -> Room:
        limit = ticket.limit_kv_tokens
        if limit is not None and self._ledger.inflight_kv_tokens(ticket.tenant) + ticket.kv_tokens > limit:
            return Room.TENANT_FULL
        if self._total_limit is not None and self._ledger.total_kv_tokens + ticket.kv_tokens > self._total_limit:
            return Room.ALL_FULL
        return Room.FREE

    def _expected_wait_s(self, ticket: Ticket) -> float | None:
        """The longer of the waits for the tenant's own limit and for the common one; the ticket stands in the queue."""
        waits: list[float | None] = []
        if ticket.limit_kv_tokens is not None:
            inflight = self._ledger.inflight_kv_tokens(ticket.tenant)
            need = self._queue.waiting_kv_tokens(ticket.tenant) + inflight - ticket.limit_kv_tokens
            hold = self._hold_of.get(ticket.tenant, self._hold)
            waits.append(expected_wait_s(need, inflight, hold.mean_s))
        if self._total_limit is not None:
            inflight = self._ledger.total_kv_tokens
            need = self._queue.total_waiting_kv_tokens + inflight - self._total_limit
            waits.append(expected_wait_s(need, inflight, self._hold.mean_s))
        known = [wait for wait in waits if wait is not None]
        return max(known) if known else None

    def _exhausted(self, ticket: Ticket, expected_s: float | None, queue_timeout_s: float) -> KvBudgetExhausted:
        inflight = self._ledger.inflight_kv_tokens(ticket.tenant)
        budget = "" if ticket.limit_kv_tokens is None else f" of {ticket.limit_kv_tokens}"
        return KvBudgetExhausted(
            f"The request may need {ticket.kv_tokens} KV tokens; {inflight}{budget} are in flight.",
            rule="kv_tokens_in_flight",
            retry_after_s=retry_after_s(queue_timeout_s if expected_s is None else expected_s, self._jitter()),
        )

    def _observe(self, closed: Closed) -> None:
        self._hold.observe(closed.kv_tokens, closed.held_s)
        self._hold_of.setdefault(closed.tenant, HoldTime()).observe(closed.kv_tokens, closed.held_s)

    def _end(self, reservation: ReservationId, used_kv_tokens: int | None) -> None:
        now_s = self._clock.now_s()
        if used_kv_tokens is None:
            closed = self._ledger.release(reservation, now_s)
        else:
            closed = self._ledger.settle(reservation, used_kv_tokens, now_s)
        if closed is not None:
            self._observe(closed)
            if self._queue.has_waiting:
                self._wake()


class MemoryReservation:
    """One open reservation; ending it again does nothing."""

    __slots__ = ("_budgets", "_reservation")

    def __init__(self, budgets: MemoryBudgets, reservation: ReservationId) -> None:
        self._budgets = budgets
        self._reservation = reservation

    def settle(self, kv_tokens: int) -> None:
        self._budgets._end(self._reservation, kv_tokens)  # noqa: SLF001 - one class in two parts

    def release(self) -> None:
        self._budgets._end(self._reservation, None)  # noqa: SLF001 - the same
