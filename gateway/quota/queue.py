"""Who waits and who is next: first come first served within a tenant, fair between tenants by cost, urgent ones first.

Between tenants: start-time fair queueing (Goyal, Vin, Cheng, 1996). Every lane has a start tag in virtual time; the
smallest goes next, moves virtual time to itself and then grows by cost / weight, so a tenant that floods with costly
requests delays another's by at most one of them. Tags belong to lanes and not to tickets, so whoever leaves the queue
takes nothing along. A lane is a tenant's requests of one priority; a higher priority goes before every lower one.

The caller goes through `candidates`, tries each and tells which it could serve. A tenant that is held back by its own
limit is thereby passed over; what it could not use meanwhile is not saved up for it (its tag never lies behind virtual
time). Who lacks *common* room is waited for: the caller stops there, else small requests would starve large ones. Not
decided here: limits, and what is in flight.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NewType, TypeAlias

from gateway.quota.claim import Claim, Priority
from gateway.types import TenantId

TicketNumber = NewType("TicketNumber", int)
_LaneKey: TypeAlias = tuple[TenantId, Priority]


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """One waiting request; its number is unique in its queue."""

    number: TicketNumber
    claim: Claim

    @property
    def lane(self) -> _LaneKey:
        return (self.claim.tenant, self.claim.priority)


@dataclass(slots=True)
class _Lane:
    """Tickets in the order of arrival, the start tag, the sum of what waits, and the weight last told."""

    tickets: OrderedDict[TicketNumber, Ticket] = field(default_factory=OrderedDict)
    start_tag: float = 0.0
    waiting_cost: int = 0
    weight: float = 1.0


class AdmissionQueue:
    """The queue of one common resource. Every request passes through, also one that need not wait: so it is fair."""

    def __init__(self) -> None:
        self._lanes: dict[_LaneKey, _Lane] = {}
        self._backlogged: dict[_LaneKey, _Lane] = {}  # those of them in which somebody waits
        self._virtual = 0.0
        self._issued = 0

    def join(self, claim: Claim) -> Ticket:
        """Stand at the end of one's own lane."""
        if claim.weight <= 0 or claim.cost < 0:
            raise ValueError(f"a ticket of cost {claim.cost} and weight {claim.weight} cannot be queued")
        self._issued += 1
        ticket = Ticket(TicketNumber(self._issued), claim)
        lane = self._lanes.setdefault(ticket.lane, _Lane())
        if not lane.tickets:
            lane.start_tag = max(lane.start_tag, self._virtual)
            self._backlogged[ticket.lane] = lane
        lane.weight = claim.weight
        lane.tickets[ticket.number] = ticket
        lane.waiting_cost += claim.cost
        return ticket

    def serve_at_once(self, claim: Claim) -> None:
        """Note what was admitted without a ticket."""
        if claim.weight <= 0 or claim.cost < 0:
            raise ValueError(f"cost {claim.cost} and weight {claim.weight} cannot be admitted")
        key = (claim.tenant, claim.priority)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        self._virtual = max(lane.start_tag, self._virtual)
        lane.start_tag = self._virtual + claim.cost / claim.weight

    def candidates(self) -> list[Ticket]:
        """The first of every lane, in the order in which they are to be tried."""
        heads = [(key[1], self._tag(lane), next(iter(lane.tickets.values()))) for key, lane in self._backlogged.items()]
        heads.sort(key=lambda head: (head[0], head[1], head[2].number))
        return [ticket for _, _, ticket in heads]

    def serve(self, ticket: Ticket) -> bool:
        """Take out one that is admitted. False: it was not waiting any more."""
        lane = self._backlogged.get(ticket.lane)
        if lane is None or ticket.number not in lane.tickets:
            return False
        self._virtual = self._tag(lane)
        self._take(lane, ticket)
        lane.start_tag = self._virtual + ticket.claim.cost / ticket.claim.weight
        return True

    def leave(self, ticket: Ticket) -> bool:
        """Stop waiting (timeout, cancellation). False: it was not waiting any more."""
        lane = self._backlogged.get(ticket.lane)
        if lane is None or ticket.number not in lane.tickets:
            return False
        self._take(lane, ticket)
        if not lane.tickets and lane.start_tag <= self._virtual:
            del self._lanes[ticket.lane]  # it owes nothing: a new lane would be its equal
        return True

    @property
    def is_empty(self) -> bool:
        return not self._backlogged

    def is_backlogged(self, claim: Claim) -> bool:
        """Whether somebody of the same lane waits."""
        return (claim.tenant, claim.priority) in self._backlogged

    def cost_ahead(self, claim: Claim) -> float:
        """About how much is served before the last of this claim's lane has been, that one included.

        What waits with a higher priority goes first; of another lane of the same, no more than its weight's share.
        """
        mine = self._backlogged.get((claim.tenant, claim.priority))
        own = mine.waiting_cost if mine else 0
        ahead = float(own)
        for (tenant, priority), lane in self._backlogged.items():
            if priority < claim.priority:
                ahead += lane.waiting_cost
            elif priority == claim.priority and tenant != claim.tenant:
                ahead += min(lane.waiting_cost, own * lane.weight / claim.weight)
        return ahead

    def waiting_count(self, tenant: TenantId) -> int:
        return sum(len(lane.tickets) for (owner, _), lane in self._backlogged.items() if owner == tenant)

    def __len__(self) -> int:
        return sum(len(lane.tickets) for lane in self._backlogged.values())

    def _take(self, lane: _Lane, ticket: Ticket) -> None:
        del lane.tickets[ticket.number]
        lane.waiting_cost -= ticket.claim.cost
        if not lane.tickets:
            del self._backlogged[ticket.lane]

    def _tag(self, lane: _Lane) -> float:
        return max(lane.start_tag, self._virtual)
