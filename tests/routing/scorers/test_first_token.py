from __future__ import annotations

import pytest
from hypothesis import given

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.scorers.first_token import FIRST_TOKEN, expected_s
from gateway.types import BackendView
from tests.routing.fields import ASKS, field_of, fleets, view

PROFILE = Profile(prefill_s_per_token=0.001, encode_s_per_patch=0.0001)
ASK = RouteAsk(images=(b"1", b"2"), image_patches=4000, prompt_tokens=1000)


@pytest.mark.parametrize(
    ("held", "facts", "seconds"),
    [
        (0, {}, 1.0 + 0.4),
        (1, {}, 0.625 + 0.2),
        (2, {}, 0.25),
        (2, {"queued_prefill_tokens": 500}, 0.75),
        (2, {"queued_encode_patches": 1000}, 0.35),
        (2, {"engine_waiting": 3, "inflight_requests": 2}, 1.25),
        (2, {"engine_waiting": 1, "inflight_requests": 2}, 0.25),
    ],
)
def test_seconds(held: int, facts: dict[str, int], seconds: float) -> None:
    assert expected_s(view("a", **facts), ASK, held, PROFILE) == pytest.approx(seconds)


def test_text_is_its_prefill() -> None:
    assert expected_s(view("a"), RouteAsk(prompt_tokens=100), 0, PROFILE) == pytest.approx(0.1)


@given(ASKS, fleets())
def test_holding_more_never_takes_longer_and_the_soonest_scores_best(ask: RouteAsk, fleet: list[BackendView]) -> None:
    for one in fleet:
        times = [expected_s(one, ask, held, PROFILE) for held in range(len(ask.images) + 1)]
        assert times == sorted(times, reverse=True)
    field = field_of(fleet, ask)
    scores = FIRST_TOKEN.score(field)
    assert max(scores) == scores[field.first_token_s.index(min(field.first_token_s))] == 1.0
