"""A prompt's tokens told by the gateway, where the engine that was asked to count them cannot.

Decided here: when our own estimate is the answer: no backend is there, or it has no such path (404, 405, 501, as a
server that speaks no Messages answers). Every other answer is the engine's. A header says whose count it is, and how
sure. Not decided here: the count (``planning``).
"""

from __future__ import annotations

import json

from gateway.ports import UpstreamResponse
from gateway.stages.trip import Trip

HEADER = "x-vlmgw-counted-by"
_HAS_NO_SUCH_PATH = frozenset({404, 405, 501})


def counts_itself(trip: Trip, response: UpstreamResponse | None = None) -> bool:
    """Whether our count is to answer instead of ``response``, or (``None``) instead of a failure to get one."""
    if not trip.x.dialect.counts_only or trip.x.client.started:
        return False
    return response is None or response.status in _HAS_NO_SUCH_PATH


async def answer_count(trip: Trip) -> None:
    """Answer with the estimate."""
    x, estimate = trip.x, trip.estimate
    trip.reservation.settle(None)
    told = json.dumps({"input_tokens": estimate.prompt_tokens}).encode()
    x.record.status = 200
    sure = "exact" if estimate.exact else "estimate"
    headers = (
        ("Content-Type", "application/json"),
        ("x-request-id", x.client.head.request_id),
        (HEADER, f"gateway; {sure}"),
    )
    await x.client.start(200, headers, len(told))
    await x.client.write(told)
    await x.client.finish()
    x.watch.lap("relay")
