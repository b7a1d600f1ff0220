"""A waiting line in front of the workers: fair by cost between tenants, by turns between one tenant's requests.

Between tenants: start-time fair queueing (Goyal, Vin, Cheng, 1996), as in ``quota.queue``. Every tenant has a start tag
in virtual time, in seconds of work; the smallest goes next and grows by its job's cost over the tenant's weight, so a
tenant with large images gets no more of the workers than one with small ones. A tenant that comes back does not get
what it could have used meanwhile, and what it had too much is remembered.

Decided here: who is next, who is turned away when the line is full, and how much work stands before a newcomer. Not
decided here: how long a job takes (costs are the caller's numbers) and when a wait is too long. Plain data, no clock.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """``tenant`` (of a ``weight``) and ``flow`` (one request) name the lanes; ``cost_s`` is the work expected."""

    @property
    def tenant(self) -> str: ...
    @property
    def flow(self) -> int: ...
    @property
    def cost_s(self) -> float: ...
    @property
    def weight(self) -> float: ...


ItemT = TypeVar("ItemT", bound=Waiting)


@dataclass(slots=True)
class _Lane(Generic[ItemT]):
    """One tenant's jobs, by request, in the order in which the requests take turns."""

    flows: OrderedDict[int, deque[ItemT]] = field(default_factory=OrderedDict)
    count: int = 0
    cost_s: float = 0.0
    start_s: float = 0.0
    weight: float = 1.0


class FairQueue(Generic[ItemT]):
    """At most ``capacity`` items, and whatever was put first."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lanes: OrderedDict[str, _Lane[ItemT]] = OrderedDict()
        self._first: deque[ItemT] = deque()
        self._virtual_s = 0.0
        self._owed: dict[str, float] = {}  # start tags, ahead of virtual time, of tenants that have nothing in line
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ItemT]:
        yield from self._first
        for lane in self._lanes.values():
            for flow in lane.flows.values():
                yield from flow

    @property
    def cost_s(self) -> float:
        return sum(lane.cost_s for lane in self._lanes.values()) + self._first_s

    @property
    def tenants(self) -> int:
        """How many tenants wait."""
        return len(self._lanes)

    @property
    def _first_s(self) -> float:
        return sum(item.cost_s for item in self._first)

    def ahead_s(self, tenant: str, cost_s: float, weight: float = 1.0) -> float:
        """Work that will be done before a new job of ``tenant``: its own, and of every other tenant no more than that.

        More or less by their weights: while this tenant's line is worked off, another's gets its share.
        """
        lane = self._lanes.get(tenant)
        own_s = lane.cost_s if lane else 0.0
        share_s = (own_s + cost_s) / weight
        others_s = sum(
            min(other.cost_s, share_s * other.weight) for name, other in self._lanes.items() if name != tenant
        )
        return own_s + others_s + self._first_s

    def has_room(self, tenant: str, item_count: int) -> bool:
        """Whether so many items of ``tenant`` would all be let in now, others' longer lanes giving way."""
        excess = self._count + item_count - self._capacity
        if excess <= 0:
            return True
        lane = self._lanes.get(tenant)
        own = item_count + (lane.count if lane else 0)
        return sum(max(0, other.count - own) for name, other in self._lanes.items() if name != tenant) >= excess

    def offer(self, item: ItemT) -> ItemT | None:
        """Put an item in line. When the line is full, the longest lane gives way: its newest item is returned.

        That is ``item`` itself where its own lane would become the longest, so a tenant cannot crowd out another.
        """
        turned_away: ItemT | None = None
        if self._count >= self._capacity:
            lane = self._lanes.get(item.tenant)
            own = lane.count if lane else 0
            longest = max(self._lanes, key=lambda name: self._lanes[name].count, default=item.tenant)
            if longest == item.tenant or self._lanes[longest].count <= own + 1:
                return item
            turned_away = self._newest(longest)
            self.discard(turned_away)
        self._append(item)
        return turned_away

    def put_first(self, item: ItemT) -> None:
        """Put an item at the head of everything, whatever the capacity: a job that had its turn and lost its worker."""
        self._first.append(item)
        self._count += 1

    def heads(self) -> Iterator[ItemT]:
        """Whose turn it is, then whose it would be if those before could not go: one item of each tenant."""
        yield from self._first
        for lane in sorted(self._lanes.values(), key=lambda lane: lane.start_s):
            yield next(iter(lane.flows.values()))[0]

    def head(self) -> ItemT | None:
        """Whose turn it is."""
        return next(self.heads(), None)

    def pop(self) -> ItemT:
        """Take the head. Raises IndexError when empty."""
        item = self.head()
        if item is None:
            raise IndexError("the queue is empty")
        self.take(item)
        return item

    def take(self, item: ItemT) -> None:
        """Take one of ``heads``: its tenant pays for it, and its request goes to the end of its round."""
        if item in self._first:
            self.discard(item)
            return
        lane = self._lanes[item.tenant]
        self._virtual_s = max(self._virtual_s, lane.start_s)
        lane.start_s += item.cost_s / item.weight
        self._lanes.move_to_end(item.tenant)
        self.discard(item)
        if item.flow in lane.flows:
            lane.flows.move_to_end(item.flow)

    def discard(self, item: ItemT) -> None:
        """Take an item out, wherever it stands; nothing happens if it is not in line."""
        if item in self._first:
            self._first.remove(item)
            self._count -= 1
            return
        lane = self._lanes.get(item.tenant)
        flow = lane.flows.get(item.flow) if lane else None
        if lane is None or flow is None or item not in flow:
            return
        flow.remove(item)
        lane.count -= 1
        lane.cost_s = max(0.0, lane.cost_s - item.cost_s) if lane.count else 0.0
        self._count -= 1
        if not flow:
            del lane.flows[item.flow]
        if not lane.flows:
            self._close(item.tenant)

    def _append(self, item: ItemT) -> None:
        lane = self._lanes.get(item.tenant)
        if lane is None:
            start_s = max(self._virtual_s, self._owed.pop(item.tenant, 0.0))
            lane = self._lanes[item.tenant] = _Lane(start_s=start_s)
        lane.weight = item.weight
        lane.flows.setdefault(item.flow, deque()).append(item)
        lane.count += 1
        lane.cost_s += item.cost_s
        self._count += 1

    def _close(self, tenant: str) -> None:
        lane = self._lanes.pop(tenant)
        if not self._lanes:
            # Nobody is left to be unfair to, and virtual time would stand still from here on.
            self._owed.clear()
            return
        self._owed = {name: start_s for name, start_s in self._owed.items() if start_s > self._virtual_s}
        if lane.start_s > self._virtual_s:
            self._owed[tenant] = lane.start_s

    def _newest(self, tenant: str) -> ItemT:
        flows = self._lanes[tenant].flows
        return max(flows.values(), key=len)[-1]
