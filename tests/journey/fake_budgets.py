"""Budgets that grant everything."""

from __future__ import annotations

from gateway.errors import GatewayError
from gateway.quota.claim import Claim, Used
from gateway.quota.standing import NOTHING
from gateway.types import TenantId
from tests.journey.books import Books, Held
from tests.journey.driver import suspend


class FakeReservation:
    def __init__(self, entry: Held) -> None:
        self._entry = entry
        self.settled: Used | None = None
        self.standing = NOTHING
        self.finding: GatewayError | None = None

    def settle(self, used: Used | None) -> None:
        if self._entry.ending is None:
            self.settled = used
        self._entry.end("settled")

    def release(self) -> None:
        self._entry.end("released")


class FakeBudgets:
    def __init__(self, books: Books) -> None:
        self._books = books
        self.asked: list[Claim] = []
        self.standing = NOTHING
        self.finding: GatewayError | None = None
        self.held_kv_tokens = 0
        self.reservations: list[FakeReservation] = []

    async def reserve(self, claim: Claim) -> FakeReservation:
        await suspend("budgets.reserve")
        self.asked.append(claim)
        made = FakeReservation(self._books.hand_out("reservation"))
        made.standing, made.finding = self.standing, self.finding
        self.reservations.append(made)
        return made

    def inflight_kv_tokens(self, tenant: TenantId) -> int:
        return self.held_kv_tokens
