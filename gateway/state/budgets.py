"""The admission queue of this process, in front of any store of budgets: who waits, who is woken, who is refused.

A request that has room passes at once. Else it waits in the line of its pool (the model it is for): urgent ones first,
tenants fairly by cost, a tenant's own in order. It is refused at once where it would wait longer than it may, with the
expected wait, jittered, as Retry-After. The line moves when something ends, when a rate will have drained, and every
``poll_s``, because a shared store and the backends change without telling.

Decided here: when the store is asked, what a waiter holds (nothing), and that what a store granted to somebody who has
left is given back. Not decided here: limits (`policy`), arithmetic and order (`quota`), where the state lives (the
store), what room the backends have (``has_room``). One reservation is placed before the next is granted, so that the
backends' accounts, which ``has_room`` reads, are never overdrawn by a crowd that is let go at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.errors import GatewayError
from gateway.ports import Clock
from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit, Used, used_costs_us
from gateway.quota.gcra import MICROSECONDS
from gateway.quota.outlook import Outlook
from gateway.quota.queue import AdmissionQueue, Ticket
from gateway.quota.refusal import impossible, refusal
from gateway.quota.standing import NOTHING, Standing
from gateway.quota.store import Denied, Granted, Maybe, Store
from gateway.quota.wait import MAX_RETRY_S, HoldTime, expected_wait_s, retry_after_s
from gateway.state.reservation import LocalReservation
from gateway.types import TenantId

POLL_S = 0.1
_ANSWERS = (Granted, Denied)
_DAY_S = 86_400.0  # a rate's wait is exact, so a client may know it however long it is


@dataclass(slots=True)
class _Line:
    """Those who want the same backends. ``is_full``: the first that could start lacked room there."""

    queue: AdmissionQueue = field(default_factory=AdmissionQueue)
    cost_in_flight: int = 0
    hold_time: HoldTime = field(default_factory=HoldTime)
    is_full: bool = False


@dataclass(slots=True)
class _Waiter:
    """One that waits, and until when it is no use to ask the store for it again.

    ``frees``: how often something of its tenant had come back when it was denied.
    """

    ticket: Ticket
    line: _Line
    granted: asyncio.Future[LocalReservation]
    denied: Denied | None
    sleeps_until_us: int = 0
    frees: int = 0

    @property
    def lacks_own_room(self) -> bool:
        return self.denied is not None and isinstance(self.denied.limit, Hold)


class LocalBudgets:
    """`ports.Budgets` in front of ``store``.

    ``wall_s`` tells seconds since 1970, ``jitter`` numbers in [0, 1); ``has_room`` whether some backend has room for a
    claim now (None: always).
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        jitter: Callable[[], float],
        wall_s: Callable[[], float],
        *,
        has_room: Callable[[Claim], bool] | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self._store = store
        self._now_s = clock.now_s
        self._jitter = jitter
        self._wall_s = wall_s
        self._has_room = has_room
        self._poll_s = poll_s
        self._issued = 0
        self._lines: dict[str | None, _Line] = {}
        self._outlooks: dict[TenantId, Outlook] = {}
        self._waiters: dict[Ticket, _Waiter] = {}
        self._frees: dict[TenantId, int] = {}  # how often something of a tenant came back
        self._pump: asyncio.Task[None] | None = None
        self._pump_again = False
        self._alarm: asyncio.TimerHandle | None = None
        self._aside: set[asyncio.Task[None]] = set()

    async def reserve(self, claim: Claim) -> LocalReservation:
        """Take what is claimed, waiting up to its timeout.

        Raises TooManyTokens or LimitExceeded for what no waiting could help; KvBudgetExhausted, InFlightExhausted,
        RateExceeded, BackendsFull for what did not or will not fit in time. In shadow mode nothing is raised, and
        ``finding`` tells what would have been.
        """
        never = impossible(claim)
        if never is not None:
            if not claim.shadow:
                raise never
            return self._opened(claim, None, NOTHING, never, self._now_us())
        line = self._line(claim.pool)
        denied: Denied | None = None
        if claim.shadow or not self._must_queue(line, claim):
            outcome = await self._take(claim)
            if not isinstance(outcome, Denied):
                line.queue.serve_at_once(claim)
                return outcome
            denied = outcome
            if claim.shadow:
                finding = self._refusal(claim, denied, denied.wait_us / MICROSECONDS)
                standing = _standing(claim, denied, self._wall_s)
                return self._opened(claim, None, standing, finding, self._now_us())
        return await self._wait(line, claim, denied)

    def inflight_kv_tokens(self, tenant: TenantId) -> int:
        """What this process has in flight for a tenant."""
        outlook = self._outlooks.get(tenant)
        return 0 if outlook is None else outlook.held.get(Unit.KV_TOKENS, 0)

    def waiting_count(self, tenant: TenantId | None = None) -> int:
        """Requests that stand in line, of one tenant or of all."""
        if tenant is None:
            return len(self._waiters)
        return sum(line.queue.waiting_count(tenant) for line in self._lines.values())

    # --- asking the store -------------------------------------------------------------------------------------------

    def _now_us(self) -> int:
        return int(self._now_s() * MICROSECONDS)

    async def _take(self, claim: Claim) -> LocalReservation | Denied:
        self._issued += 1
        reservation = ReservationId(self._issued)
        now_us = self._now_us()
        outcome = self._store.take(claim, reservation, now_us)
        if not isinstance(outcome, _ANSWERS):
            outcome = await self._arrived(outcome, reservation, claim.tenant)
        standing = NOTHING
        if claim.charges:
            self._outlook(claim.tenant).saw(claim.charges, outcome, now_us)
            standing = _standing(claim, outcome, self._wall_s)
        if isinstance(outcome, Denied):
            return outcome
        return self._opened(claim, reservation, standing, None, now_us)

    async def _arrived(
        self, answer: Awaitable[Granted | Denied], reservation: ReservationId, tenant: TenantId
    ) -> Granted | Denied:
        """A remote store's answer; if nobody is left to hear it, what it granted is given back."""
        try:
            return await answer
        except asyncio.CancelledError:
            self._hear(self._store.release(reservation, self._now_us()), tenant)
            raise

    def _opened(
        self,
        claim: Claim,
        reservation: ReservationId | None,
        standing: Standing,
        finding: GatewayError | None,
        now_us: int,
    ) -> LocalReservation:
        self._outlook(claim.tenant).opened(claim)
        self._line(claim.pool).cost_in_flight += claim.cost
        return LocalReservation(self._end, claim, reservation, now_us, standing, finding)

    def _end(self, ended: LocalReservation, used: Used | None, settles: bool) -> None:  # noqa: FBT001  # a callback's
        claim, reservation, now_us = ended.claim, ended.number, self._now_us()
        held_us = max(0, now_us - ended.opened_us)
        self._outlook(claim.tenant).closed(claim, held_us)
        line = self._line(claim.pool)
        line.cost_in_flight -= claim.cost
        line.hold_time.observe(claim.cost, held_us / MICROSECONDS)
        if reservation is None:
            self._free(claim.tenant)
            return
        if settles and claim.charges:
            costs_us = used_costs_us(claim, used, held_us)
            self._hear(self._store.settle(reservation, costs_us, now_us), claim.tenant)
        else:
            self._hear(self._store.release(reservation, now_us), claim.tenant)

    def _hear(self, answer: Maybe[bool], tenant: TenantId) -> None:
        """What comes back is free once the store knows it; a remote one is not waited for."""
        if not isinstance(answer, Awaitable):
            self._free(tenant)
            return
        task = asyncio.get_running_loop().create_task(self._free_later(answer, tenant))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _free_later(self, answer: Awaitable[bool], tenant: TenantId) -> None:
        try:
            await answer
        finally:
            self._free(tenant)

    def _free(self, tenant: TenantId) -> None:
        self._frees[tenant] = self._frees.get(tenant, 0) + 1
        if self._waiters:
            self._move()

    # --- waiting ----------------------------------------------------------------------------------------------------

    def _must_queue(self, line: _Line, claim: Claim) -> bool:
        if line.queue.is_empty:
            line.is_full = False
        elif line.is_full or line.queue.is_backlogged(claim):
            return True
        if self._has_room is not None and not self._has_room(claim):
            line.is_full = True
            return True
        return False

    async def _wait(self, line: _Line, claim: Claim, denied: Denied | None) -> LocalReservation:
        outlook, frees = self._outlook(claim.tenant), self._frees.get(claim.tenant, 0)
        ticket = line.queue.join(claim)
        outlook.joined(claim)
        waiter = _Waiter(ticket, line, asyncio.get_running_loop().create_future(), denied, frees=frees)
        self._waiters[ticket] = waiter
        timer: asyncio.TimerHandle | None = None
        try:
            expected_s = self._expected_s(waiter)
            if claim.queue_timeout_s <= 0 or (expected_s is not None and expected_s > claim.queue_timeout_s):
                raise self._told(waiter, expected_s)
            timer = asyncio.get_running_loop().call_later(claim.queue_timeout_s, self._give_up, waiter)
            self._sleep(waiter)
            self._move()
            return await waiter.granted
        except asyncio.CancelledError:
            granted = waiter.granted
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                granted.result().release()  # granted, but nobody is left to own it
            raise
        finally:
            if timer is not None:
                timer.cancel()
            outlook.left(claim)
            del self._waiters[ticket]
            if line.queue.leave(ticket):
                self._move()  # it may have been what the others waited behind

    def _give_up(self, waiter: _Waiter) -> None:
        if not waiter.granted.done():
            waiter.granted.set_exception(self._told(waiter, self._expected_s(waiter)))

    def _expected_s(self, waiter: _Waiter) -> float | None:
        """The longer of the waits for the tenant's own limits and for the backends; None where nothing tells."""
        claim, line = waiter.ticket.claim, waiter.line
        waits = [self._outlook(claim.tenant).own_wait_s(claim, waiter.denied, self._now_us())]
        if line.is_full:
            waits.append(expected_wait_s(line.queue.cost_ahead(claim), line.cost_in_flight, line.hold_time.mean_s))
        known = [wait_s for wait_s in waits if wait_s is not None]
        return max(known) if known else None

    def _told(self, waiter: _Waiter, expected_s: float | None) -> GatewayError:
        claim, denied = waiter.ticket.claim, waiter.denied
        if denied is None and not waiter.line.is_full:
            denied = self._behind(waiter)
        wait_s = claim.queue_timeout_s if expected_s is None else expected_s
        return self._refusal(claim, denied, wait_s)

    def _behind(self, waiter: _Waiter) -> Denied | None:
        """What the first of the lane was denied for is what all behind it wait for."""
        lane = waiter.ticket.lane
        for other in self._waiters.values():
            if other.ticket.lane == lane and other.denied is not None:
                return other.denied
        return None

    def _refusal(self, claim: Claim, denied: Denied | None, wait_s: float) -> GatewayError:
        is_rate = denied is not None and isinstance(denied.limit, Charge)
        retry_s = retry_after_s(wait_s, self._jitter(), most_s=_DAY_S if is_rate else MAX_RETRY_S)
        error = refusal(denied, retry_s, claim.held(Unit.KV_TOKENS))
        if denied is not None and claim.charges:
            error.standing = self._outlook(claim.tenant).standing(claim.charges, self._now_us(), self._wall_s())
        return error

    # --- moving the lines -------------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """A backend may have room now."""
        if self._waiters:
            self._move()

    def _move(self) -> None:
        """Let everybody who can start do so, soon: after what runs now has given back all it held."""
        self._pump_again = True
        if self._pump is None and self._waiters:
            self._pump = asyncio.get_running_loop().create_task(self._keep_moving())

    async def _keep_moving(self) -> None:
        try:
            while self._pump_again and self._waiters:
                self._pump_again = False
                for line in list(self._lines.values()):
                    while await self._admit_one(line):
                        pass
        finally:
            self._pump = None
            self._set_alarm()

    async def _admit_one(self, line: _Line) -> bool:
        line.is_full = False
        for ticket in line.queue.candidates():
            claim, waiter = ticket.claim, self._waiters[ticket]
            is_freed = waiter.lacks_own_room and waiter.frees != self._frees.get(claim.tenant, 0)
            if waiter.granted.done() or (waiter.sleeps_until_us > self._now_us() and not is_freed):
                continue
            if self._has_room is not None and not self._has_room(claim):
                if waiter.lacks_own_room and not is_freed:
                    continue
                line.is_full = True
                return False
            frees = self._frees.get(claim.tenant, 0)
            outcome = await self._take(claim)
            if isinstance(outcome, Denied):
                waiter.denied, waiter.frees = outcome, frees
                self._sleep(waiter)
                continue
            if waiter.granted.done() or not line.queue.serve(ticket):
                outcome.release()  # it left while the store was asked
            else:
                waiter.granted.set_result(outcome)
                await asyncio.sleep(0)  # the waiter runs now, and places its request on a backend
            return True
        return False

    def _sleep(self, waiter: _Waiter) -> None:
        """No use to ask again before its rates have drained, or others may have given back what they held."""
        if waiter.denied is not None:
            wait_us = waiter.denied.wait_us or int(self._poll_s * MICROSECONDS)
            waiter.sleeps_until_us = self._now_us() + wait_us

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._waiters:
            now_us = self._now_us()
            poll_us = now_us + int(self._poll_s * MICROSECONDS)
            heads = [self._waiters[ticket] for line in self._lines.values() for ticket in line.queue.candidates()]
            wakings_us = [head.sleeps_until_us for head in heads if head.sleeps_until_us > now_us]
            wait_s = (min([poll_us, *wakings_us]) - now_us) / MICROSECONDS
            self._alarm = asyncio.get_running_loop().call_later(wait_s, self._move)

    def _line(self, pool: str | None) -> _Line:
        line = self._lines.get(pool)
        if line is None:
            line = self._lines[pool] = _Line()
        return line

    def _outlook(self, tenant: TenantId) -> Outlook:
        outlook = self._outlooks.get(tenant)
        if outlook is None:
            outlook = self._outlooks[tenant] = Outlook()
        return outlook


def _standing(claim: Claim, outcome: Granted | Denied, wall_s: Callable[[], float]) -> Standing:
    return Standing(claim.charges, outcome.tats_us, outcome.now_us, wall_s())
