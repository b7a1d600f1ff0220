"""What holds for every scorer, and how a queue is counted."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from gateway.routing.ask import RouteAsk, Weights
from gateway.routing.scorers import SCORERS
from gateway.routing.scorers.contract import queued_tokens
from gateway.types import BackendView
from tests.routing.fields import ASKS, field_of, fleets, holding, view


@given(ASKS, fleets())
def test_costs_are_seconds_one_per_candidate(ask: RouteAsk, fleet: list[BackendView]) -> None:
    field = field_of(fleet, ask, holding({"a": ask.images, "b": ask.images[:1]}, ask))
    for scorer, weight_of in SCORERS:
        costs = scorer.cost_s(field)
        assert weight_of(Weights()) >= 0
        assert len(costs) == len(field.views)
        assert all(math.isfinite(cost) for cost in costs)


@pytest.mark.parametrize(
    ("facts", "tokens"),
    [
        ({}, 500),
        ({"engine_waiting": 4, "engine_running": 4, "scraped_inflight_requests": 8}, 500),
        ({"engine_waiting": 4, "engine_running": 4, "scraped_inflight_requests": 0}, 500 + 4 * 100),
        ({"engine_waiting": 4, "engine_running": 4, "scraped_inflight_requests": 6}, 500 + 100),
        ({"engine_waiting": 4, "engine_waiting_tokens": 8000, "scraped_inflight_requests": 1}, 500 + 6000),
        ({"engine_waiting": 4, "scraped_inflight_requests": 0, "scraped_age_s": 11.0}, 500),
        ({"engine_waiting": 4, "scraped_inflight_requests": 0, "scraped_age_s": 0.01}, 500 + 400 - 100),
        ({"engine_waiting": 4, "scraped_inflight_requests": 0, "scraped_age_s": 5.0}, 500),
        ({"engine_waiting": 3, "inflight_requests": 2}, 500 + 100),
    ],
)
def test_what_waits_in_an_engine_is_not_counted_twice(facts: dict[str, float], tokens: int) -> None:
    assert queued_tokens(view("a", queued_prefill_tokens=500, **facts), 100, 1e-4) == tokens
