"""What holds for every filter of the registry."""

from __future__ import annotations

from hypothesis import given

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.filters import FILTERS
from gateway.routing.holding import RouteKey
from gateway.types import BackendView
from tests.routing.fields import ASKS, fleets, view


def test_names_are_unique_and_the_permanent_come_first() -> None:
    names = [rule.name for rule in FILTERS]
    assert len(set(names)) == len(names)
    fleet = [view("a", models=("n",), vision=False, max_images=0)]
    ask = RouteAsk(model="m", key=RouteKey((b"1",), (4,), (1,)), is_exact=True)
    hard = [rule.refuse(ask, Profile(), fleet) is not None for rule in FILTERS]
    assert hard == sorted(hard, reverse=True), "a soft filter must not hide who passes a hard one"


@given(ASKS, fleets())
def test_a_filter_looks_at_one_backend_at_a_time(ask: RouteAsk, fleet: list[BackendView]) -> None:
    for rule in FILTERS:
        assert list(rule.narrow(fleet, ask)) == [one for one in fleet if rule.keeps(one, ask)]
