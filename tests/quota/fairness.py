"""A server of one resource in virtual time, with the admission queue in front: how long everybody waits.

Work is done at one unit of cost per second, one request at a time, so a request's cost is also the time it takes.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.quota.claim import Claim
from gateway.quota.queue import AdmissionQueue, Ticket


@dataclass(frozen=True, slots=True)
class Arrival:
    at_s: float
    claim: Claim


def waits_s(arrivals: Sequence[Arrival]) -> list[float]:
    """How long each arrival waited, in the order given; ties of arrival keep that order."""
    queue = AdmissionQueue()
    coming = [(arrival.at_s, number) for number, arrival in enumerate(arrivals)]
    heapq.heapify(coming)
    waited = [0.0] * len(arrivals)
    numbers: dict[Ticket, int] = {}
    free_at_s = 0.0
    while coming or not queue.is_empty:
        while coming and (queue.is_empty or coming[0][0] <= free_at_s):
            at_s, number = heapq.heappop(coming)
            numbers[queue.join(arrivals[number].claim)] = number
            free_at_s = max(free_at_s, at_s)
        ticket = queue.candidates()[0]
        queue.serve(ticket)
        number = numbers.pop(ticket)
        waited[number] = free_at_s - arrivals[number].at_s
        free_at_s += arrivals[number].claim.cost
    return waited


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
