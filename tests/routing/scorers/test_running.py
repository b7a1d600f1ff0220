from __future__ import annotations

import pytest

from gateway.routing.ask import RouteAsk
from gateway.routing.scorers.running import RUNNING
from tests.routing.fields import field_of, view


def test_what_decodes_beside_counts_whoever_sent_it() -> None:
    fleet = [view("a", inflight_requests=2), view("b", inflight_requests=2, engine_running=5), view("c")]
    assert list(RUNNING.cost_s(field_of(fleet, RouteAsk()))) == pytest.approx([0.002, 0.005, 0.0])


def test_in_one_that_has_just_come_back_each_counts_for_several() -> None:
    fleet = [view("a", inflight_requests=2), view("b", inflight_requests=2, ramp=0.5)]
    assert list(RUNNING.cost_s(field_of(fleet, RouteAsk()))) == pytest.approx([0.002, 0.004])
