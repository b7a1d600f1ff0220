"""Whether some backend has room for a claim: what the admission queue asks before it lets a request start.

Decided here: which backends count. With none that is up the answer is yes, so that the decision can say why there is no
backend instead of letting everybody wait for one. Not decided here: what room is (`kv_headroom` and `limits` among
`routing.filters`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.quota.claim import Claim, Unit
from gateway.routing.filters.kv_headroom import has_headroom
from gateway.routing.filters.limits import is_within_limits
from gateway.types import BackendView


def room_on(
    views: Callable[[], Sequence[BackendView]], fill: float | None, *, limited: bool = False
) -> Callable[[Claim], bool] | None:
    """The question, asked of the backends as ``views`` shows them at that moment.

    ``fill`` None: of their limits alone; ``None`` where they have none of those either (not ``limited``).
    """
    if fill is None and not limited:
        return None

    def has_room(claim: Claim) -> bool:
        is_served = False
        for view in views():
            if (
                not view.healthy
                or view.draining
                or (claim.pool is not None and view.models and claim.pool not in view.models)
            ):
                continue
            fits = fill is None or has_headroom(view, claim.held(Unit.KV_TOKENS), fill)
            if fits and is_within_limits(view, claim.prompt_tokens):
                return True
            is_served = True
        return not is_served

    return has_room
