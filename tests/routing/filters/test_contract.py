"""What holds for every filter of the registry."""

from __future__ import annotations

from hypothesis import given

from gateway.routing.ask import RouteAsk
from gateway.routing.filters import FILTERS
from gateway.types import BackendView
from tests.routing.fields import ASKS, fleets


def test_names_are_unique_and_the_permanent_come_first() -> None:
    names = [rule.name for rule in FILTERS]
    assert len(set(names)) == len(names)
    hard = [rule.refuse is not None for rule in FILTERS]
    assert hard == sorted(hard, reverse=True), "a soft filter must not hide who passes a hard one"


@given(ASKS, fleets())
def test_a_filter_looks_at_one_backend_at_a_time(ask: RouteAsk, fleet: list[BackendView]) -> None:
    for rule in FILTERS:
        kept = [one for one in fleet if rule.keeps(one, ask)]
        assert kept == [one for one in kept if rule.keeps(one, ask)]
