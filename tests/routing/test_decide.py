"""The whole decision: errors in their order, reasons in the trail, and what must hold for every fleet."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, InvalidRequest, ModelNotFound, NoBackend
from gateway.routing.ask import RouteAsk
from gateway.routing.decide import decide
from gateway.routing.field import ALL_OF
from gateway.routing.filters import FILTERS
from gateway.routing.hashing import ranked
from gateway.routing.holding import Holding, RouteKey
from gateway.types import BackendName, BackendView
from tests.routing.fields import ASKS, NOTHING, asking, facts_of_a_backend, fleets, holding, view

IMAGE = b"0123456789abcdef"


def test_nobody_at_all() -> None:
    with pytest.raises(NoBackend) as caught:
        decide([], RouteAsk(), NOTHING)
    assert caught.value.retry_after_s is not None


def test_a_model_nobody_serves_is_not_found_even_when_all_are_down() -> None:
    with pytest.raises(ModelNotFound):
        decide([view("a", models=("n",), healthy=False)], RouteAsk(model="m"), NOTHING)


def test_images_for_a_model_without_eyes() -> None:
    with pytest.raises(InvalidRequest):
        decide([view("a", vision=False)], asking(images=(IMAGE,), needs_vision=True), NOTHING)


def test_when_all_were_tried_it_is_over() -> None:
    tried = frozenset({BackendName("a")})
    with pytest.raises(NoBackend):
        decide([view("a"), view("b", models=("n",))], RouteAsk(model="m", excluded=tried), NOTHING)


def test_the_last_resort_is_tried_and_said_to_be_one() -> None:
    decision = decide([view("a", healthy=False), view("b", draining=True)], RouteAsk(), NOTHING)
    assert "filter available: none of 2, skipped" in decision.trail


def test_the_trail_tells_filters_scores_and_pick() -> None:
    fleet = [view("a", models=("m",)), view("b", models=("m",)), view("c", models=("n",))]
    ask = asking((IMAGE,), 4000, model="m", prompt_tokens=100)
    decision = decide(fleet, ask, holding({"b": [IMAGE]}, ask))
    assert (decision.backend, decision.url, decision.reason) == ("b", "http://b", "holds_images")
    assert decision.known_images == 1
    assert decision.trail[0] == "filter model: 2 of 3"
    assert decision.trail[-1] == "picker: holds_images -> b"
    assert decision.trail[1].startswith("score b: ")


def test_text_goes_where_least_is_in_flight() -> None:
    fleet = [view("a", inflight_requests=5), view("b", inflight_requests=1), view("c", inflight_requests=3)]
    assert decide(fleet, RouteAsk(prompt_tokens=10), NOTHING).backend == "b"


@given(ASKS, fleets(), st.randoms())
def test_the_choice_survives_every_filter_and_ignores_the_order(
    ask: RouteAsk, fleet: list[BackendView], shuffler: random.Random
) -> None:
    held = holding({"a": ask.images, "b": ask.images[1:]}, ask)
    shuffled = list(fleet)
    shuffler.shuffle(shuffled)
    try:
        decision = decide(fleet, ask, held)
    except GatewayError as refusal:
        with pytest.raises(type(refusal)):
            decide(shuffled, ask, held)
        return
    again = decide(shuffled, ask, held)
    assert (again.backend, again.reason, sorted(again.trail)) == (
        decision.backend,
        decision.reason,
        sorted(decision.trail),
    )
    left = fleet
    for rule in FILTERS:
        left = list(rule.narrow(left, ask)) or left
    assert decision.backend in {one.name for one in left}
    assert decision.reason in {"only_one", "least_loaded", "rendezvous", "holds_images", "holds_prefix", "another_home"}


@given(fleets(plain=True), st.binary(min_size=16, max_size=16))
def test_removing_a_backend_moves_only_its_own_images(fleet: list[BackendView], image: bytes) -> None:
    ask = asking(images=(image,), kv_tokens=100)
    home = decide(fleet, ask, NOTHING).backend
    for gone in fleet:
        rest = [one for one in fleet if one is not gone]
        if rest and gone.name != home:
            assert decide(rest, ask, NOTHING).backend == home


@given(ASKS, st.lists(facts_of_a_backend(), min_size=1, max_size=4), st.integers(ALL_OF + 1, 90))
def test_in_a_large_fleet_the_few_that_are_looked_at_stand_for_all(
    ask: RouteAsk, kinds: list[dict[str, object]], count: int
) -> None:
    fleet = [view(f"b{number}", **kinds[number % len(kinds)]) for number in range(count)]
    left = fleet
    for rule in FILTERS:
        left = list(rule.narrow(left, ask)) or left
    try:
        decision = decide(fleet, ask, NOTHING)
    except GatewayError as refusal:
        with pytest.raises(type(refusal)):
            decide(fleet[: len(kinds)], ask, NOTHING)
        return
    assert decision.backend in {one.name for one in left}
    assert decision.reason in {"only_one", "least_loaded", "rendezvous"}


def test_where_few_of_a_large_fleet_pass_they_are_found_all_the_same() -> None:
    fleet = [view(f"b{number}", healthy=number == 61) for number in range(100)]
    decision = decide(fleet, asking((IMAGE,), 4000, prompt_tokens=10), NOTHING)
    assert (decision.backend, decision.reason) == ("b61", "only_one")
    assert decision.trail[0] == "filter available: 1 of 100"


def test_a_keeper_in_a_large_fleet_is_found() -> None:
    fleet = [view(f"b{number}") for number in range(100)]
    assert decide(fleet, RouteAsk(keeper=BackendName("b61"), prompt_tokens=10), NOTHING).backend == "b61"


def test_the_trail_of_a_large_fleet_is_short() -> None:
    fleet = [view(f"b{number}", inflight_requests=number) for number in range(100)]
    decision = decide(fleet, RouteAsk(prompt_tokens=10), NOTHING)
    assert decision.trail[0] == "shortlist: 24 of 100"
    assert len(decision.trail) < 15


def test_a_hot_image_gets_another_home_when_the_queue_outweighs_the_work_and_loses_it_when_it_cooled_down() -> None:
    home, away = ranked([view("a"), view("b")], IMAGE)
    ask = asking((IMAGE,), 4000, prompt_tokens=1000, kv_tokens=1000)
    held = holding({home.name: [IMAGE]}, ask)
    busy = [replace(home, queued_prefill_tokens=500), away]
    assert decide(busy, ask, held).reason == "holds_images"
    drowning = [replace(home, queued_prefill_tokens=5000), away]
    assert (decide(drowning, ask, held).backend, decide(drowning, ask, held).reason) == (away.name, "another_home")
    both = holding({home.name: [IMAGE], away.name: [IMAGE]}, ask)
    assert decide([home, away], ask, both).backend == home.name


def test_the_load_bound_shows_in_the_trail() -> None:
    fleet = [view("a", recent_work_tokens=1e6), view("b"), view("c")]
    decision = decide(fleet, RouteAsk(prompt_tokens=10, kv_tokens=10), NOTHING)
    assert "load bound: 2 of 3" in decision.trail
    assert decision.backend != "a"


def test_an_old_history_stays_where_its_prefix_is() -> None:
    ask = RouteAsk(key=RouteKey(chain=(1, 2), chain_tokens=(4000, 8000)), prompt_tokens=9000, kv_tokens=9500)
    fleet = [view("a", queued_prefill_tokens=3000), view("b")]
    decision = decide(fleet, ask, {BackendName("a"): Holding(0, 0, 8000)})
    assert (decision.backend, decision.reason, decision.ahead.own_tokens) == ("a", "holds_prefix", 1000)
