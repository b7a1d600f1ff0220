from __future__ import annotations

from gateway.routing.ask import RouteAsk
from gateway.routing.scorers.load import LOAD
from tests.routing.fields import field_of, view


def test_the_least_busy_is_the_measure() -> None:
    fleet = [view("a", inflight_requests=1), view("b", inflight_requests=3), view("c", inflight_requests=7)]
    assert LOAD.score(field_of(fleet, RouteAsk())) == [1.0, 0.5, 0.25]
