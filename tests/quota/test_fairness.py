"""A tenant that floods with 100-image requests does not make another wait longer than for one such request."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.quota.claim import Claim
from gateway.types import TenantId
from tests.quota.fairness import Arrival, percentile, waits_s

FLOOD, QUIET = TenantId("flood"), TenantId("quiet")
# 100 images of 1,230 tokens and what their encoding costs, against one such image and a text.
FLOOD_COST, QUIET_COST = 100 * 1_230 + 100 * 1_008, 1_500


def quiet_at(times_s: list[float]) -> list[Arrival]:
    return [Arrival(at_s, Claim(tenant=QUIET, holds=(), cost=QUIET_COST)) for at_s in times_s]


def flood_at(times_s: list[float]) -> list[Arrival]:
    return [Arrival(at_s, Claim(tenant=FLOOD, holds=(), cost=FLOOD_COST)) for at_s in times_s]


def test_a_flood_of_hundred_image_requests_costs_another_tenant_one_of_them_at_p99() -> None:
    every = [float(number) * 10 * QUIET_COST for number in range(400)]
    alone = waits_s(quiet_at(every))
    among = waits_s(quiet_at(every) + flood_at([0.0] * 300))[: len(every)]
    assert percentile(alone, 0.99) == 0
    # The server is busy with one of them when the other arrives; non-preemptive service cannot do better.
    assert percentile(among, 0.99) - percentile(alone, 0.99) <= FLOOD_COST
    assert max(among) <= FLOOD_COST + QUIET_COST


@settings(max_examples=40)
@given(
    gaps=st.lists(st.integers(1, 20), min_size=1, max_size=60),
    flood=st.lists(st.integers(0, 100 * QUIET_COST), min_size=1, max_size=60),
)
def test_whatever_the_flood_does_nobody_waits_longer_for_it_than_one_request(gaps: list[int], flood: list[int]) -> None:
    """For a tenant within its share: each waits for its own requests and for one of the flood's per busy period."""
    at_s, times_s = 0.0, []
    for gap in gaps:
        at_s += FLOOD_COST + gap * QUIET_COST  # no more than its half of the server, at any time
        times_s.append(at_s)
    among = waits_s(quiet_at(times_s) + flood_at([float(each) for each in flood]))[: len(times_s)]
    assert max(among) <= FLOOD_COST + QUIET_COST
