"""Whether some backend has room for a claim: what the admission queue asks before it lets a request start.

Decided here: which backends count. With none that is up the answer is yes, so that the decision can say why there is no
backend instead of letting everybody wait for one. Not decided here: what room is (`routing.filters.kv_headroom`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.quota.claim import Claim, Unit
from gateway.routing.filters.kv_headroom import has_headroom
from gateway.types import BackendView


def room_on(views: Callable[[], Sequence[BackendView]], fill: float) -> Callable[[Claim], bool]:
    """The question, asked of the backends as ``views`` shows them at that moment."""

    def has_room(claim: Claim) -> bool:
        is_served = False
        for view in views():
            if (
                not view.healthy
                or view.draining
                or (claim.pool is not None and view.models and claim.pool not in view.models)
            ):
                continue
            if has_headroom(view, claim.held(Unit.KV_TOKENS), fill):
                return True
            is_served = True
        return not is_served

    return has_room
