"""What a store of budgets does: five atomic steps, the same wherever it keeps them.

    take      test everything, then take everything or nothing
    settle    open -> settled: what it held comes back, what it was charged becomes what it used
    release   open -> released: what it held comes back, what it was charged stays (a failed request counts, too)
    renew     the leases begin anew
    expire    open -> expired: leases that are over; as a release

The first end wins; a later one changes nothing and says so. Which limit a refusal names is part of the contract, so
that two stores can be held against each other: the first hold in the claim's order that has no room; else, of the
charges that do not pass, the one that waits longest (of equals the first). ``wait_us`` is always the longest wait of
all charges.

A store in this process answers at once; one behind a network returns an awaitable (`Maybe`). Time is an argument, whole
microseconds; a time before the latest seen counts as the latest. All leases of a store last equally long, and one that
lasts until ``t`` is over at ``t``. A store may keep its own clock instead, for everything alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from gateway.quota.claim import Charge, Claim, Hold, ReservationId

_Answer = TypeVar("_Answer")
Maybe: TypeAlias = _Answer | Awaitable[_Answer]


class Granted(NamedTuple):
    """Taken. ``tats_us``: each charge's bucket afterwards, in the claim's order, at the store's time ``now_us``."""

    tats_us: tuple[int, ...]
    now_us: int


@dataclass(frozen=True, slots=True)
class Denied:
    """Nothing was taken. ``in_use``: what is in flight of a hold's unit; 0 for a charge.

    ``wait_us``: until all rates would admit it, were nothing else to happen; 0 where only room in flight lacks.
    ``tats_us``: the buckets as they stand (0 for one never used), at the store's time ``now_us``.
    """

    limit: Hold | Charge
    wait_us: int
    in_use: int
    tats_us: tuple[int, ...]
    now_us: int


class Store(Protocol):
    """See the module. Raises ValueError for a reservation that is open already, a bug of the caller."""

    def take(self, claim: Claim, reservation: ReservationId, now_us: int) -> Maybe[Granted | Denied]: ...

    def settle(self, reservation: ReservationId, costs_us: Sequence[int], now_us: int) -> Maybe[bool]:
        """``costs_us``: what each charge should have been (`claim.used_costs_us`). False: it had ended already."""
        ...

    def release(self, reservation: ReservationId, now_us: int) -> Maybe[bool]: ...

    def renew(self, reservations: Sequence[ReservationId], now_us: int) -> Maybe[Sequence[ReservationId]]:
        """Those of them that had ended already, in the order given."""
        ...

    def expire(self, now_us: int) -> Maybe[Sequence[ReservationId]]:
        """End what is over. ``take`` does it before it tests."""
        ...
