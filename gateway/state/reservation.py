"""One open reservation of this process (`ports.Reservation`).

Decided here: that it ends once, however often and in whatever order it is told to. Not decided here: what ending does
(`budgets`).
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.errors import GatewayError
from gateway.quota.claim import Claim, ReservationId, Used
from gateway.quota.standing import Standing


class LocalReservation:
    """``number`` None: nothing is held in the store. ``end`` is called once, with the usage and whether it settles."""

    __slots__ = ("_end", "_is_over", "claim", "finding", "number", "opened_us", "standing")

    def __init__(
        self,
        end: Callable[[LocalReservation, Used | None, bool], None],
        claim: Claim,
        number: ReservationId | None,
        opened_us: int,
        standing: Standing,
        finding: GatewayError | None,
    ) -> None:
        self._end = end
        self._is_over = False
        self.claim = claim
        self.number = number
        self.opened_us = opened_us
        self.standing = standing
        self.finding = finding

    def settle(self, used: Used | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._end(self, used, True)  # the callback's last argument: it settles

    def release(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._end(self, None, False)  # the same
