"""What one replica knows by itself of the budgets it shares: what it holds, and what the store was not told yet.

While the store answers, the book only notes what is open. While it is away, the book decides alone, within this
replica's share, and remembers what the store must be told afterwards:

    in flight   a hold passes within limit / replicas; the only one of its tenant here passes up to the whole limit,
                else a request larger than the share could never be served. What was open before counts.
    rates       a bucket drains at rate / replicas, so a charge costs ``replicas`` times its time; one that is larger
                than what may come at once passes when the bucket is empty. These buckets are kept from outage to
                outage, so that a store that comes and goes gives no fresh burst each time.

Charges made meanwhile are one function of a bucket, tat' = max(tat + added, floor): applying the generic cell rate
algorithm at time t with cost c to that form gives added + c and max(floor, t) + c again, so any number of charges at
their own times is told exactly by two numbers. A correction downwards subtracts from both, and never more than
`gcra.refunded` would. Times are local microseconds here; ``offset_us`` turns them into the store's.

A take whose answer never came may have been carried out. It is told by name, with its charges, so that the store
charges it if it had not. Not decided here: when the store is told (``shared``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.quota.claim import Charge, Claim, Hold, ReservationId, Unit
from gateway.quota.gcra import charged, wait_us
from gateway.quota.store import Denied, Granted
from gateway.state.redis_store import bucket_of
from gateway.types import TenantId


@dataclass(slots=True)
class Untold:
    """Charges as a function of a bucket. ``floor_us`` None: none yet, whatever the bucket."""

    added_us: int = 0
    floor_us: int | None = None

    def charge(self, cost_us: int, now_us: int) -> None:
        """One charge (or an extra) at a time."""
        self.added_us += cost_us
        self.floor_us = (now_us if self.floor_us is None else max(self.floor_us, now_us)) + cost_us

    def refund(self, surplus_us: int) -> None:
        """Give back; the caller knows how much has not drained."""
        self.added_us -= surplus_us
        if self.floor_us is not None:
            self.floor_us -= surplus_us


@dataclass(frozen=True, slots=True)
class Held:
    """One open reservation. ``tats_us``: what its charges made of their buckets, by the store's time, or less."""

    claim: Claim
    tats_us: Sequence[int]


@dataclass(frozen=True, slots=True)
class UnsureTake:
    """A take whose answer never came. ``charges``: bucket, cost, when by local time."""

    reservation: ReservationId
    charges: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What the store is told of one tenant's rates; ``number`` grows, so that it charges nothing twice."""

    number: int
    untold: dict[str, Untold]
    unsure: list[UnsureTake]


@dataclass(slots=True)
class Page:
    """One tenant. ``shares_us`` are this replica's own buckets (local time).

    ``seen_us``: the store's as last seen, and when (its time).
    """

    sums: dict[Unit, int] = field(default_factory=dict)
    open: dict[ReservationId, Held] = field(default_factory=dict)
    shares_us: dict[str, int] = field(default_factory=dict)
    seen_us: dict[str, tuple[int, int]] = field(default_factory=dict)
    untold: dict[str, Untold] = field(default_factory=dict)
    unsure: list[UnsureTake] = field(default_factory=list)
    unheard: list[Told] = field(default_factory=list)
    told_count: int = 0


class Book:
    """See the module."""

    def __init__(self) -> None:
        self.offset_us = 0
        self._pages: dict[TenantId, Page] = {}
        self._tenant_of: dict[ReservationId, TenantId] = {}

    def page(self, tenant: TenantId) -> Page:
        """A tenant's page, begun at the first look."""
        found = self._pages.get(tenant)
        if found is None:
            found = self._pages[tenant] = Page()
        return found

    def is_open(self, reservation: ReservationId) -> bool:
        return reservation in self._tenant_of

    @property
    def open(self) -> list[ReservationId]:
        """All open reservations."""
        return list(self._tenant_of)

    def tenants_of(self, reservations: Iterable[ReservationId]) -> list[TenantId]:
        """Whose those of them are that are open still."""
        return sorted({self._tenant_of[each] for each in reservations if each in self._tenant_of})

    def tenants_to_tell(self, store_now_us: int) -> list[TenantId]:
        """Tenants of whom the store may not know all."""
        return [
            tenant
            for tenant, page in self._pages.items()
            if page.open
            or page.untold
            or page.unsure
            or page.unheard
            or any(tat_us > store_now_us for tat_us, _ in page.seen_us.values())
        ]

    # --- while the store answers ------------------------------------------------------------------------------------

    def saw(self, claim: Claim, outcome: Granted | Denied) -> None:
        """Buckets as the store told them."""
        if claim.charges:
            seen_us = self.page(claim.tenant).seen_us
            for charge, tat_us in zip(claim.charges, outcome.tats_us, strict=True):
                seen_us[bucket_of(charge)] = (tat_us, outcome.now_us)

    def opened(self, reservation: ReservationId, claim: Claim, tats_us: Sequence[int]) -> None:
        """Note what the store granted."""
        self._note(reservation, claim, Held(claim, tats_us))

    def closed(self, reservation: ReservationId) -> Held | None:
        """Forget one whose end the store is told by itself. None: it had ended already."""
        tenant = self._tenant_of.pop(reservation, None)
        if tenant is None:
            return None
        page = self._pages[tenant]
        held = page.open.pop(reservation)
        for hold in held.claim.holds:
            page.sums[hold.unit] -= hold.amount
        return held

    # --- while it is away -------------------------------------------------------------------------------------------

    def take(
        self, claim: Claim, reservation: ReservationId, now_us: int, replicas: int, *, is_unsure: bool = False
    ) -> Granted | Denied:
        """Decide within the share. ``is_unsure``: the store was asked before and may have taken it."""
        page = self.page(claim.tenant)
        shares_us = page.shares_us
        before = tuple(shares_us.get(bucket_of(charge), 0) for charge in claim.charges)
        after = tuple(
            charged(tat_us, now_us, charge.cost_us * replicas)
            for tat_us, charge in zip(before, claim.charges, strict=True)
        )
        lacking = _lacking(claim, page.sums, after, now_us, replicas)
        if lacking is not None:
            return Denied(*lacking, before, now_us)
        tats_us = []
        for charge, share_tat_us in zip(claim.charges, after, strict=True):
            bucket = bucket_of(charge)
            shares_us[bucket] = share_tat_us
            tat_us = now_us + charge.cost_us
            if not is_unsure:
                untold = page.untold.setdefault(bucket, Untold())
                untold.charge(charge.cost_us, now_us)
                tat_us = untold.floor_us or tat_us
            tats_us.append(tat_us + self.offset_us)
        if is_unsure:
            charges = tuple((bucket_of(charge), charge.cost_us, now_us) for charge in claim.charges)
            page.unsure.append(UnsureTake(reservation, charges))
        self._note(reservation, claim, Held(claim, tats_us))
        return Granted(after, now_us)

    def end(self, reservation: ReservationId, costs_us: Sequence[int] | None, now_us: int) -> bool:
        """Settle (or release, without costs) one while the store is away: its charges are told later."""
        held = self.closed(reservation)
        if held is None:
            return False
        if costs_us is None:
            return True
        claim, page = held.claim, self.page(held.claim.tenant)
        for charge, tat_us, cost_us in zip(claim.charges, held.tats_us, costs_us, strict=True):
            surplus_us = charge.cost_us - cost_us
            if surplus_us:
                untold = page.untold.setdefault(bucket_of(charge), Untold())
                if surplus_us < 0:
                    untold.charge(-surplus_us, now_us)
                else:
                    untold.refund(min(surplus_us, max(0, tat_us - now_us - self.offset_us)))
        return True

    # --- telling it -------------------------------------------------------------------------------------------------

    def to_tell(self, tenant: TenantId) -> list[Told]:
        """What the store has not confirmed yet, in order; it counts as being told from now on."""
        page = self.page(tenant)
        if page.untold or page.unsure or not page.unheard:
            page.told_count += 1
            page.unheard.append(Told(page.told_count, page.untold, page.unsure))
            page.untold, page.unsure = {}, []
        return list(page.unheard)

    def heard(self, tenant: TenantId, number: int) -> None:
        """The store has confirmed what it was told up to this number."""
        page = self.page(tenant)
        page.unheard = [told for told in page.unheard if told.number > number]

    def _note(self, reservation: ReservationId, claim: Claim, held: Held) -> None:
        page = self.page(claim.tenant)
        page.open[reservation] = held
        self._tenant_of[reservation] = claim.tenant
        for hold in claim.holds:
            page.sums[hold.unit] = page.sums.get(hold.unit, 0) + hold.amount


def _lacking(
    claim: Claim, sums: dict[Unit, int], tats_us: Sequence[int], now_us: int, replicas: int
) -> tuple[Hold | Charge, int, int] | None:
    """What a refusal names, as `quota.store` orders it."""
    longest_us, slowest = 0, None
    for charge, tat_us in zip(claim.charges, tats_us, strict=True):
        capacity_us = max(charge.rate.capacity_us, charge.cost_us * replicas)
        this_us = wait_us(tat_us, now_us, capacity_us)
        if this_us > longest_us:
            longest_us, slowest = this_us, charge
    for hold in claim.holds:
        in_use = sums.get(hold.unit, 0)
        if hold.limit is None:
            continue
        share = hold.limit // replicas
        if in_use + hold.amount > (max(share, hold.amount) if in_use == 0 else share):
            return hold, longest_us, in_use
    return None if slowest is None else (slowest, longest_us, 0)
