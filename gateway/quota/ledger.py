"""What is held in flight: reservations of KV tokens as a small state machine, and their sums per tenant.

A reservation goes open -> settled | released | expired, and the first transition wins: later ones change nothing and
say so, because a release on a way out may race with a settlement or with its lease. Closed reservations are forgotten
at once, so memory is bounded by what is open. Units: KV tokens, seconds of one monotonic clock.

All leases last equally long, hence the order of opening (or renewal) is the order of expiry and no heap is needed; a
clock that steps back is held at the latest time seen, which keeps that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.quota.claim import ReservationId
from gateway.types import TenantId


class Outcome(StrEnum):
    """How a reservation ended."""

    SETTLED = "settled"
    RELEASED = "released"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Closed:
    """One ended reservation. ``used_kv_tokens`` is what the engine reported, known only when settled."""

    reservation: ReservationId
    tenant: TenantId
    kv_tokens: int
    held_s: float
    outcome: Outcome
    used_kv_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Open:
    tenant: TenantId
    kv_tokens: int
    opened_s: float
    expires_s: float


class Ledger:
    """The open reservations of one store. It enforces no limit; it answers what is in flight."""

    def __init__(self, lease_s: float) -> None:
        if lease_s <= 0:
            raise ValueError(f"a lease of {lease_s} s would end before it begins")
        self._lease_s = lease_s
        self._open: dict[ReservationId, _Open] = {}
        self._by_tenant: dict[TenantId, int] = {}
        self._total = 0
        self._latest_s = float("-inf")

    def open(self, reservation: ReservationId, tenant: TenantId, kv_tokens: int, now_s: float) -> None:
        """Take tokens. Raises ValueError for a number already open or a negative amount, both bugs of the caller."""
        if reservation in self._open or kv_tokens < 0:
            raise ValueError(f"reservation {reservation} of {kv_tokens} tokens cannot be opened")
        now_s = self._advance(now_s)
        self._open[reservation] = _Open(tenant, kv_tokens, now_s, now_s + self._lease_s)
        self._by_tenant[tenant] = self._by_tenant.get(tenant, 0) + kv_tokens
        self._total += kv_tokens

    def settle(self, reservation: ReservationId, used_kv_tokens: int, now_s: float) -> Closed | None:
        """End with the engine's own count. None: it had ended already."""
        return self._close(reservation, Outcome.SETTLED, now_s, used_kv_tokens)

    def release(self, reservation: ReservationId, now_s: float) -> Closed | None:
        """End without a count (refused, failed, cancelled). None: it had ended already."""
        return self._close(reservation, Outcome.RELEASED, now_s)

    def renew(self, reservation: ReservationId, now_s: float) -> bool:
        """Let the lease begin anew. False: it had ended already, and the tokens may be someone else's by now."""
        entry = self._open.pop(reservation, None)
        if entry is None:
            return False
        now_s = self._advance(now_s)
        self._open[reservation] = _Open(entry.tenant, entry.kv_tokens, entry.opened_s, now_s + self._lease_s)
        return True

    def expire(self, now_s: float) -> tuple[Closed, ...]:
        """End every reservation whose lease is over."""
        now_s = self._advance(now_s)
        over: list[ReservationId] = []
        for reservation, entry in self._open.items():
            if entry.expires_s > now_s:
                break
            over.append(reservation)
        closed = (self._close(reservation, Outcome.EXPIRED, now_s) for reservation in over)
        return tuple(entry for entry in closed if entry is not None)

    def inflight_kv_tokens(self, tenant: TenantId) -> int:
        return self._by_tenant.get(tenant, 0)

    @property
    def total_kv_tokens(self) -> int:
        return self._total

    @property
    def open_count(self) -> int:
        return len(self._open)

    def _close(
        self, reservation: ReservationId, outcome: Outcome, now_s: float, used_kv_tokens: int | None = None
    ) -> Closed | None:
        entry = self._open.pop(reservation, None)
        if entry is None:
            return None
        now_s = self._advance(now_s)
        self._total -= entry.kv_tokens
        left = self._by_tenant.pop(entry.tenant, 0) - entry.kv_tokens  # absent where only empty ones are open
        if left:
            self._by_tenant[entry.tenant] = left
        return Closed(reservation, entry.tenant, entry.kv_tokens, now_s - entry.opened_s, outcome, used_kv_tokens)

    def _advance(self, now_s: float) -> float:
        self._latest_s = max(self._latest_s, now_s)
        return self._latest_s
