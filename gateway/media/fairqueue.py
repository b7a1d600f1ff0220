"""The waiting line in front of the workers: round robin over tenants, then over one tenant's requests.

Decided here: who is next, who is turned away when the line is full, and how much work stands before a newcomer. Not
decided here: how long a job takes (costs are the caller's numbers) and when a wait is too long. Plain data, no clock.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """``tenant`` and ``flow`` (one request) name the lanes; ``cost_s`` is the work expected."""

    @property
    def tenant(self) -> str: ...
    @property
    def flow(self) -> int: ...
    @property
    def cost_s(self) -> float: ...


ItemT = TypeVar("ItemT", bound=Waiting)


@dataclass(slots=True)
class _Lane(Generic[ItemT]):
    """One tenant's jobs, by request, in the order in which the requests take turns."""

    flows: OrderedDict[int, deque[ItemT]] = field(default_factory=OrderedDict)
    count: int = 0
    cost_s: float = 0.0


class FairQueue(Generic[ItemT]):
    """At most ``capacity`` items; order is fair by turns, not by cost."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lanes: OrderedDict[str, _Lane[ItemT]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ItemT]:
        for lane in self._lanes.values():
            for flow in lane.flows.values():
                yield from flow

    @property
    def cost_s(self) -> float:
        return sum(lane.cost_s for lane in self._lanes.values())

    def ahead_s(self, tenant: str, cost_s: float) -> float:
        """Work that will be done before a new job of ``tenant``: its own, and of every other tenant no more than that.

        Turns alternate, so while this tenant's line is worked off, another's gets about as much.
        """
        lane = self._lanes.get(tenant)
        own_s = lane.cost_s if lane else 0.0
        others_s = sum(min(other.cost_s, own_s + cost_s) for name, other in self._lanes.items() if name != tenant)
        return own_s + others_s

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
        self._append(item, front=False)
        return turned_away

    def put_first(self, item: ItemT) -> None:
        """Put an item at the head of everything, whatever the capacity: a job that had its turn and lost its worker."""
        self._append(item, front=True)

    def head(self) -> ItemT | None:
        """Whose turn it is."""
        if not self._lanes:
            return None
        lane = next(iter(self._lanes.values()))
        return next(iter(lane.flows.values()))[0]

    def pop(self) -> ItemT:
        """Take the head; its tenant and its request go to the end of their rounds. Raises IndexError when empty."""
        item = self.head()
        if item is None:
            raise IndexError("the queue is empty")
        self.discard(item)
        if item.tenant in self._lanes:
            self._lanes.move_to_end(item.tenant)
            if item.flow in self._lanes[item.tenant].flows:
                self._lanes[item.tenant].flows.move_to_end(item.flow)
        return item

    def discard(self, item: ItemT) -> None:
        """Take an item out, wherever it stands; nothing happens if it is not in line."""
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
            del self._lanes[item.tenant]

    def _append(self, item: ItemT, *, front: bool) -> None:
        lane = self._lanes.setdefault(item.tenant, _Lane())
        flow = lane.flows.setdefault(item.flow, deque())
        lane.count += 1
        lane.cost_s += item.cost_s
        self._count += 1
        if not front:
            flow.append(item)
            return
        flow.appendleft(item)
        lane.flows.move_to_end(item.flow, last=False)
        self._lanes.move_to_end(item.tenant, last=False)

    def _newest(self, tenant: str) -> ItemT:
        flows = self._lanes[tenant].flows
        return max(flows.values(), key=len)[-1]
