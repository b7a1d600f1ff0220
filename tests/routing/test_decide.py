"""The whole decision: errors in their order, reasons in the trail, and what must hold for every fleet."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, InvalidRequest, ModelNotFound, NoBackend
from gateway.routing.affinity import ImageIndex
from gateway.routing.ask import RouteAsk
from gateway.routing.decide import decide
from gateway.routing.filters import FILTERS
from gateway.types import BackendName, BackendView
from tests.routing.fields import ASKS, NOTHING, asking, fleets, holding, view

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
    ask = asking(model="m", images=(IMAGE,), prompt_tokens=100)
    decision = decide(fleet, ask, holding({"b": [IMAGE]}, ask))
    assert (decision.backend, decision.url, decision.reason) == ("b", "http://b", "holds_images")
    assert decision.known_images == 1
    assert decision.trail[0] == "filter model: 2 of 3"
    assert decision.trail[-1] == "picker: holds_images -> b"
    assert any(line.startswith("score a: ") for line in decision.trail)


def test_text_goes_where_least_is_in_flight() -> None:
    fleet = [view("a", inflight_requests=3), view("b", inflight_requests=1), view("c", inflight_requests=2)]
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
        left = [one for one in left if rule.keeps(one, ask)] or left
    assert decision.backend in {one.name for one in left}
    assert decision.reason in {"only_one", "least_loaded", "rendezvous", "holds_images", "another_home"}


@given(fleets(plain=True), st.binary(min_size=16, max_size=16))
def test_removing_a_backend_moves_only_its_own_images(fleet: list[BackendView], image: bytes) -> None:
    ask = asking(images=(image,), kv_tokens=100)
    home = decide(fleet, ask, NOTHING).backend
    for gone in fleet:
        rest = [one for one in fleet if one is not gone]
        if rest and gone.name != home:
            assert decide(rest, ask, NOTHING).backend == home


def simulated(concurrency: int, seed: int) -> dict[bytes, set[str]]:
    """Twenty images, ten requests each in random order, so many at a time; who saw which image."""
    shuffler = random.Random(seed)
    requests = [image.to_bytes(16, "big") for image in range(20) for _ in range(10)]
    shuffler.shuffle(requests)
    index = ImageIndex(100)
    homes: dict[bytes, set[str]] = {}
    running: list[str] = []
    for image in requests:
        if len(running) >= concurrency:
            running.pop(shuffler.randrange(len(running)))
        counts = {name: running.count(name) for name in "ab"}
        fleet = [
            view(name, inflight_requests=n, inflight_kv_tokens=600 * n, queued_prefill_tokens=250 * n)
            for name, n in counts.items()
        ]
        ask = asking(images=(image,), image_patches=2000, prompt_tokens=500, kv_tokens=600, needs_vision=True)
        chosen = decide(fleet, ask, index.holdings(ask.key)).backend
        index.learn(chosen, [image])
        homes.setdefault(image, set()).add(chosen)
        running.append(chosen)
    return homes


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_under_moderate_load_every_image_has_one_home(concurrency: int) -> None:
    for seed in range(5):
        homes = simulated(concurrency, seed)
        assert all(len(backends) == 1 for backends in homes.values())
        assert {name for backends in homes.values() for name in backends} == {"a", "b"}


def test_the_trail_of_a_large_fleet_is_short() -> None:
    fleet = [view(f"b{number}", inflight_requests=number) for number in range(100)]
    decision = decide(fleet, RouteAsk(prompt_tokens=10), NOTHING)
    assert decision.backend == "b0"
    assert len(decision.trail) < 15
    assert decision.trail[0].startswith("score b0: ")
