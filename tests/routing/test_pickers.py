"""The pick: the least cost, and what decides between equals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.ask import RouteAsk
from gateway.routing.hashing import ranked
from gateway.routing.holding import Holding
from gateway.routing.pickers import pick
from gateway.types import BackendName
from tests.routing.fields import asking, field_of, view

IMAGE = b"0123456789abcdef"
ASK = asking((IMAGE,), 4000, prompt_tokens=1000, kv_tokens=1000)
FLEET = [view("a"), view("b"), view("c")]
HOME = ranked(FLEET, IMAGE)[0].name
AWAY = next(one.name for one in FLEET if one.name != HOME)


def test_the_least_cost() -> None:
    assert pick(field_of(FLEET, RouteAsk()), [0.3, 0.1, 0.2]).index == 1


def test_equals_go_home() -> None:
    picked = pick(field_of(FLEET, ASK), [0.2, 0.2, 0.2005])
    assert (FLEET[picked.index].name, picked.reason) == (HOME, "rendezvous")


def test_equals_without_a_home_by_recent_work_then_evenly() -> None:
    fleet = [view("a", recent_work_tokens=10.0), view("b", recent_work_tokens=5.0), view("c", recent_work_tokens=10.0)]
    assert pick(field_of(fleet, RouteAsk(prompt_tokens=100)), [0.1, 0.1, 0.1]).index == 1
    chosen = {pick(field_of(FLEET, RouteAsk(request_id=str(n))), [0.1, 0.1, 0.1]).index for n in range(50)}
    assert chosen == {0, 1, 2}


def test_reasons() -> None:
    def reason(held: dict[str, Holding], cheapest: str) -> str:
        holdings = {BackendName(name): each for name, each in held.items()}
        return pick(field_of(FLEET, ASK, holdings), [0.0 if one.name == cheapest else 9.0 for one in FLEET]).reason

    assert reason({HOME: Holding(1, 4000)}, HOME) == "holds_images"
    assert reason({HOME: Holding(1, 4000)}, AWAY) == "another_home"
    assert reason({HOME: Holding(0, 0, 500)}, HOME) == "holds_prefix"
    assert reason({}, HOME) == "rendezvous"
    assert reason({}, AWAY) == "least_loaded"


@given(st.lists(st.floats(0, 100), min_size=3, max_size=3))
def test_nobody_much_dearer_is_picked(costs: list[float]) -> None:
    field = field_of(FLEET, ASK)
    assert costs[pick(field, costs).index] <= min(costs) + 0.001 + 0.05 * max(field.work_s)
