"""The pick: homes, bounds, staying and leaving."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.hashing import ranked
from gateway.routing.pickers import pick, tight_bound_tokens
from gateway.types import BackendView
from tests.routing.fields import asking, field_of, fleets, holding, view

IMAGE = b"0123456789abcdef"
ASK = asking(images=(IMAGE,), image_patches=4000, prompt_tokens=1000, kv_tokens=1000)
HOME, AWAY = (one.name for one in ranked([view("a"), view("b")], IMAGE))


def names(fleet: list[BackendView], index: int) -> str:
    return fleet[index].name


def test_one_candidate_needs_no_thought() -> None:
    assert pick(field_of([view("a")], ASK), [1.0]).reason == "only_one"


def test_an_unknown_image_goes_home_and_one_more_request_fits_there() -> None:
    for busy in (0, 1):
        fleet = [view(HOME, inflight_requests=busy, inflight_kv_tokens=1000 * busy), view(AWAY)]
        picked = pick(field_of(fleet, ASK), [0.5, 0.5])
        assert (names(fleet, picked.index), picked.reason) == (HOME, "rendezvous")


def test_an_unknown_image_avoids_a_home_over_the_bound() -> None:
    fleet = [view(HOME, inflight_requests=2, inflight_kv_tokens=2000), view(AWAY)]
    picked = pick(field_of(fleet, ASK), [0.5, 0.5])
    assert (names(fleet, picked.index), picked.reason) == (AWAY, "rendezvous")


def test_a_known_image_stays_under_moderate_load() -> None:
    fleet = [view(HOME), view(AWAY, inflight_requests=8, inflight_kv_tokens=8000)]
    picked = pick(field_of(fleet, ASK, holding({AWAY: [IMAGE]}, ASK)), [0.9, 0.1])
    assert (names(fleet, picked.index), picked.reason) == (AWAY, "holds_images")


@pytest.mark.parametrize("facts", [{"inflight_requests": 16}, {"queued_prefill_tokens": 20_000}])
def test_a_hot_image_gets_another_home(facts: dict[str, int]) -> None:
    fleet = [view(HOME, **facts), view(AWAY)]
    picked = pick(field_of(fleet, ASK, holding({HOME: [IMAGE]}, ASK)), [0.9, 0.1])
    assert (names(fleet, picked.index), picked.reason) == (AWAY, "another_home")


def test_when_everybody_holds_it_and_is_full_it_is_shared_out() -> None:
    fleet = [
        view(HOME, inflight_requests=40, inflight_kv_tokens=40_000, queued_prefill_tokens=40_000),
        view(AWAY, inflight_requests=40, inflight_kv_tokens=40_000),
    ]
    picked = pick(field_of(fleet, ASK, holding({HOME: [IMAGE], AWAY: [IMAGE]}, ASK)), [0.5, 0.6])
    assert (names(fleet, picked.index), picked.reason) == (AWAY, "holds_images")


def test_text_takes_the_best_score_and_spreads_over_equals() -> None:
    fleet = [view("a"), view("b"), view("c")]
    assert pick(field_of(fleet, RouteAsk()), [0.1, 0.9, 0.5]).index == 1
    chosen = {pick(field_of(fleet, RouteAsk(request_id=str(n))), [0.9, 0.9, 0.5]).index for n in range(50)}
    assert chosen == {0, 1}


@given(fleets(), st.integers(1, 5000), st.binary(min_size=16, max_size=16))
def test_the_load_bound_holds_or_the_least_loaded_is_taken(fleet: list[BackendView], cost: int, image: bytes) -> None:
    ask = asking(images=(image,), kv_tokens=cost)
    picked = fleet[pick(field_of(fleet, ask), [1.0] * len(fleet)).index]
    total = sum(one.inflight_kv_tokens for one in fleet)
    bound = tight_bound_tokens(total, cost, len(fleet), Profile())
    least = min(one.inflight_kv_tokens for one in fleet)
    assert picked.inflight_kv_tokens + cost <= bound or picked.inflight_kv_tokens == least


@given(fleets(plain=True), st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=60))
def test_equal_requests_never_exceed_the_factor_by_more_than_one(fleet: list[BackendView], images: list[bytes]) -> None:
    counts = dict.fromkeys((one.name for one in fleet), 0)
    for image in images:
        now = [view(name, inflight_requests=n, inflight_kv_tokens=100 * n) for name, n in counts.items()]
        ask = asking(images=(image,), kv_tokens=100)
        counts[now[pick(field_of(now, ask), [1.0] * len(now)).index].name] += 1
    assert max(counts.values()) <= 1.25 * len(images) / len(fleet) + 1
