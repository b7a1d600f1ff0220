from __future__ import annotations

from gateway.ports import Reservation
from gateway.quota.claim import Claim, ReservationId, Used
from gateway.quota.standing import NOTHING
from gateway.state.reservation import LocalReservation
from gateway.types import TenantId

CLAIM = Claim(tenant=TenantId("a"), holds=())


def test_it_ends_once_whatever_is_said_afterwards() -> None:
    ends: list[tuple[Used | None, bool]] = []

    def end(_: LocalReservation, used: Used | None, settles: bool) -> None:
        ends.append((used, settles))

    for first in ("settle", "release"):
        one: Reservation = LocalReservation(end, CLAIM, ReservationId(1), 0, NOTHING, None)
        if first == "settle":
            one.settle(Used(5, 1))
        one.release()
        one.settle(None)
        one.release()
    assert ends == [(Used(5, 1), True), (None, False)]
