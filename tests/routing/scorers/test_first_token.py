from __future__ import annotations

import pytest
from hypothesis import given

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.holding import NOTHING, Holding
from gateway.routing.scorers.first_token import FIRST_TOKEN, expected_s
from gateway.types import BackendView
from tests.routing.fields import ASKS, asking, field_of, fleets, view

PROFILE = Profile(prefill_s_per_token=0.001, encode_s_per_patch=0.0001)
ALL = Holding(2, 4000, 750)
ASK = asking(images=(b"1", b"2"), image_patches=4000, prompt_tokens=1000)


@pytest.mark.parametrize(
    ("held", "facts", "seconds"),
    [
        (NOTHING, {}, 1.0 + 0.4),
        (Holding(1, 2000), {}, 1.0 + 0.2),
        (Holding(2, 4000, 750), {}, 0.25),
        (ALL, {"queued_prefill_tokens": 500}, 0.75),
        (ALL, {"queued_encode_patches": 1000}, 0.35),
        (ALL, {"engine_waiting": 3, "inflight_requests": 2}, 1.25),
        (ALL, {"engine_waiting": 1, "inflight_requests": 2}, 0.25),
    ],
)
def test_seconds(held: Holding, facts: dict[str, int], seconds: float) -> None:
    assert expected_s(view("a", **facts), ASK, held, PROFILE) == pytest.approx(seconds)


def test_text_is_its_prefill() -> None:
    assert expected_s(view("a"), RouteAsk(prompt_tokens=100), NOTHING, PROFILE) == pytest.approx(0.1)


@given(ASKS, fleets())
def test_holding_more_never_takes_longer_and_the_soonest_scores_best(ask: RouteAsk, fleet: list[BackendView]) -> None:
    growing = [Holding(0, ask.key.encode_patches * share // 4, ask.prompt_tokens * share // 4) for share in range(5)]
    for one in fleet:
        times = [expected_s(one, ask, held, PROFILE) for held in growing]
        assert times == sorted(times, reverse=True)
    field = field_of(fleet, ask)
    scores = FIRST_TOKEN.score(field)
    assert max(scores) == scores[field.first_token_s.index(min(field.first_token_s))] == 1.0
