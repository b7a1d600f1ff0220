"""What a store that was away is told when it is back, as commands: first what was charged, then all that is open.

Decided here: the words. Not decided here: what is true (``book``), when it is said (``shared``).
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.quota.claim import ReservationId
from gateway.state.book import Book, Held, Told
from gateway.state.redis_store import bucket_of
from gateway.state.scripts import HOLD, TELL, tenant_keys
from gateway.state.wire import Argument, Command
from gateway.types import TenantId


class Teller:
    """Speaks for one replica."""

    def __init__(self, book: Book, *, prefix: str, replica: str, lease_us: int) -> None:
        self._book = book
        self._prefix = prefix
        self._replica = replica
        self._lease_us = lease_us

    def commands(self, tenant: TenantId, under_way: Iterable[ReservationId]) -> tuple[list[Command], int]:
        """All about one tenant, and the number up to which it is then told. ``under_way``: takes without an answer."""
        told = self._book.to_tell(tenant)
        commands = [self._tell(tenant, each) for each in told]
        commands.append(self._hold(tenant, list(under_way)))
        return commands, told[-1].number

    def _tell(self, tenant: TenantId, told: Told) -> Command:
        offset_us = self._book.offset_us
        seen_us = self._book.page(tenant).seen_us
        words: list[Argument] = [0, self._replica, told.number, len(seen_us)]
        for bucket, (tat_us, seen_at_us) in seen_us.items():
            words += (bucket, tat_us, seen_at_us)
        words.append(len(told.untold))
        for bucket, untold in told.untold.items():
            floor_us = 0 if untold.floor_us is None else untold.floor_us + offset_us
            words += (bucket, untold.added_us, floor_us)
        words.append(len(told.unsure))
        for take in told.unsure:
            words += (self._name(take.reservation), len(take.charges))
            for bucket, cost_us, at_us in take.charges:
                words += (bucket, cost_us, at_us + offset_us)
        return Command.run(TELL, tenant_keys(self._prefix, tenant), *words)

    def _hold(self, tenant: TenantId, under_way: list[ReservationId]) -> Command:
        held = self._book.page(tenant).open
        words: list[Argument] = [0, self._lease_us, f"{self._replica}:", len(under_way)]
        words += map(self._name, under_way)
        words.append(len(held))
        for reservation, each in held.items():
            words += (self._name(reservation), _holds(each), _charges(each))
        return Command.run(HOLD, tenant_keys(self._prefix, tenant), *words)

    def _name(self, reservation: ReservationId) -> str:
        return f"{self._replica}:{reservation}"


def _holds(held: Held) -> str:
    return " ".join(f"{hold.unit.value} {hold.amount}" for hold in held.claim.holds)


def _charges(held: Held) -> str:
    charges = zip(held.claim.charges, held.tats_us, strict=True)
    return " ".join(f"{bucket_of(charge)} {charge.cost_us} {tat_us}" for charge, tat_us in charges)
