"""Who waits for a budget and who is next: first come first served within a tenant, fair between tenants by cost.

Between tenants: start-time fair queueing (Goyal, Vin, Cheng, 1996). Every tenant has a start tag in virtual time; the
smallest goes next, moves virtual time to itself and then grows by cost / weight, so a tenant that floods with costly
requests delays another's by at most one of them. Tags belong to tenants and not to tickets, so whoever leaves the queue
takes nothing along.

A tenant that is held back by its own limit is passed over; what it could not use meanwhile is not saved up for it
(its tag never lies behind virtual time). The next tenant that lacks only *common* room is waited for, else small
requests would starve large ones. Not decided here: limits and what is in flight; the caller tells by ``room``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NewType

from gateway.types import TenantId

TicketNumber = NewType("TicketNumber", int)


class Room(Enum):
    """Whether a ticket can be admitted now."""

    FREE = auto()
    TENANT_FULL = auto()
    ALL_FULL = auto()


@dataclass(frozen=True, slots=True)
class Ticket:
    """One waiting request. ``limit_kv_tokens`` is its tenant's limit as its own policy snapshot has it."""

    number: TicketNumber
    tenant: TenantId
    kv_tokens: int
    limit_kv_tokens: int | None
    weight: float


@dataclass(slots=True)
class _Lane:
    """One tenant's tickets in the order of arrival, and its start tag."""

    tickets: OrderedDict[TicketNumber, Ticket] = field(default_factory=OrderedDict)
    start_tag: float = 0.0
    waiting_kv_tokens: int = 0


class AdmissionQueue:
    """Every request passes through, also when it need not wait: that is how fairness knows what was used."""

    def __init__(self) -> None:
        self._lanes: dict[TenantId, _Lane] = {}
        self._backlogged: dict[TenantId, _Lane] = {}  # those of them in which somebody waits: what `admit` looks at
        self._virtual = 0.0
        self._issued = 0

    def join(self, tenant: TenantId, kv_tokens: int, limit_kv_tokens: int | None = None, weight: float = 1.0) -> Ticket:
        """Stand at the end of the tenant's own lane."""
        if weight <= 0 or kv_tokens < 0:
            raise ValueError(f"a ticket of {kv_tokens} tokens and weight {weight} cannot be queued")
        self._issued += 1
        ticket = Ticket(TicketNumber(self._issued), tenant, kv_tokens, limit_kv_tokens, weight)
        lane = self._lanes.setdefault(tenant, _Lane())
        if not lane.tickets:
            lane.start_tag = max(lane.start_tag, self._virtual)
            self._backlogged[tenant] = lane
        lane.tickets[ticket.number] = ticket
        lane.waiting_kv_tokens += kv_tokens
        return ticket

    def serve_at_once(self, tenant: TenantId, kv_tokens: int) -> TicketNumber | None:
        """Join and be admitted in one step, for a request that has room; ``None`` while anybody waits."""
        if self._backlogged:
            return None
        if kv_tokens < 0:
            raise ValueError(f"{kv_tokens} tokens cannot be admitted")
        self._issued += 1
        lane = self._lanes.get(tenant)
        if lane is None:
            lane = self._lanes[tenant] = _Lane()
        self._virtual = max(lane.start_tag, self._virtual)
        lane.start_tag = self._virtual + kv_tokens
        return TicketNumber(self._issued)

    @property
    def has_waiting(self) -> bool:
        return bool(self._backlogged)

    def leave(self, ticket: Ticket) -> bool:
        """Stop waiting (timeout, cancellation). False: it was not waiting any more."""
        lane = self._backlogged.get(ticket.tenant)
        if lane is None or ticket.number not in lane.tickets:
            return False
        self._take(lane, ticket)
        if not lane.tickets and lane.start_tag <= self._virtual:
            del self._lanes[ticket.tenant]  # it owes nothing: a new lane would be its equal
        return True

    def admit(self, room: Callable[[Ticket], Room]) -> Ticket | None:
        """Take out the next ticket that can start now, or None. Call again after noting what it took."""
        heads = [(self._tag(lane), next(iter(lane.tickets.values()))) for lane in self._backlogged.values()]
        for tag, ticket in sorted(heads, key=lambda head: (head[0], head[1].number)):
            state = room(ticket)
            if state is Room.ALL_FULL:
                break
            if state is Room.FREE:
                self._serve(ticket, tag)
                return ticket
        return None

    def waiting_kv_tokens(self, tenant: TenantId) -> int:
        lane = self._lanes.get(tenant)
        return lane.waiting_kv_tokens if lane else 0

    def waiting_count(self, tenant: TenantId) -> int:
        lane = self._lanes.get(tenant)
        return len(lane.tickets) if lane else 0

    @property
    def total_waiting_kv_tokens(self) -> int:
        return sum(lane.waiting_kv_tokens for lane in self._backlogged.values())

    def __len__(self) -> int:
        return sum(len(lane.tickets) for lane in self._backlogged.values())

    def _serve(self, ticket: Ticket, tag: float) -> None:
        lane = self._lanes[ticket.tenant]
        self._take(lane, ticket)
        self._virtual = tag
        lane.start_tag = tag + ticket.kv_tokens / ticket.weight

    def _take(self, lane: _Lane, ticket: Ticket) -> None:
        del lane.tickets[ticket.number]
        lane.waiting_kv_tokens -= ticket.kv_tokens
        if not lane.tickets:
            del self._backlogged[ticket.tenant]

    def _tag(self, lane: _Lane) -> float:
        return max(lane.start_tag, self._virtual)
