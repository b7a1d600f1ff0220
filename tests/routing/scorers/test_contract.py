"""What holds for every scorer of the registry."""

from __future__ import annotations

from hypothesis import given

from gateway.routing.ask import RouteAsk
from gateway.routing.scorers import SCORERS
from gateway.types import BackendView
from tests.routing.fields import ASKS, field_of, fleets, holding


@given(ASKS, fleets())
def test_scores_are_one_per_candidate_and_within_bounds(ask: RouteAsk, fleet: list[BackendView]) -> None:
    field = field_of(fleet, ask, holding({"a": ask.images, "b": ask.images[:1]}, ask))
    for scorer, weight in SCORERS:
        scores = scorer.score(field)
        assert weight > 0
        assert len(scores) == len(fleet)
        assert all(0.0 <= score <= 1.0 for score in scores)
