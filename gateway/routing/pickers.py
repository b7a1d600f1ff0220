"""Which of the scored candidates it is, and the word for why.

The least cost. Costs that nobody could tell apart are equal: then it is who holds most images, the content's home, so
that replicas which share nothing agree and a hot image that cooled down is asked of one backend again; else the one
with least recent work; else by rendezvous on the request id, so that equals are used evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.routing.hashing import first, spread
from gateway.routing.scorers.contract import Field
from gateway.types.per_request import per_request

# Clocks, networks and estimates tell no two first tokens apart that are as near as this.
EQUAL_S, EQUAL_SHARE = 1e-3, 0.05


@per_request(frozen=True, slots=True)
class Pick:
    """``index`` into the field; ``reason`` is one word for metrics and the log."""

    index: int
    reason: str


def pick(field: Field, costs_s: Sequence[float], *, others_hold: bool = False) -> Pick:
    """Decide among the candidates of ``field`` by weighted costs; ``others_hold``: somebody left out has images."""
    index = _least(field, costs_s)
    held = field.holdings[index]
    if held.images:
        return Pick(index, "holds_images")
    if others_hold or any(holding.images for holding in field.holdings):
        return Pick(index, "another_home")
    if held.prefix_tokens:
        return Pick(index, "holds_prefix")
    return Pick(index, "rendezvous" if index == field.home else "least_loaded")


def _least(field: Field, costs_s: Sequence[float]) -> int:
    latest = min(costs_s)
    latest += EQUAL_S + EQUAL_SHARE * min(field.work_s)
    equals = [index for index, cost in enumerate(costs_s) if cost <= latest]
    most = max([field.holdings[index].images for index in equals])
    if most:
        equals = [index for index in equals if field.holdings[index].images == most]
    if len(equals) == 1:
        return equals[0]
    if field.home in equals:
        return field.home
    work = [field.views[index].recent_work_tokens for index in equals]
    least = min(work)
    idlest = [index for index, each in zip(equals, work, strict=True) if each == least]
    if len(idlest) == 1:
        return idlest[0]
    views = [field.views[index] for index in idlest]
    return idlest[first(views, spread(field.ask.request_id.encode("utf-8", "surrogatepass")))]
