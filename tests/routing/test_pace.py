"""A backend's pace: found from far off, not thrown by outliers, never out of bounds."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.pace import ENCODE_BOUNDS_S, PREFILL_BOUNDS_S, TokenPace

SEED = TokenPace(1e-4, 2e-5)


@pytest.mark.parametrize(("prefill_s", "encode_s"), [(2e-5, 3e-6), (3e-3, 8e-4), (1e-4, 2e-5)])
def test_it_is_found_from_mixed_work_in_spite_of_outliers(prefill_s: float, encode_s: float) -> None:
    pace, dice = SEED, random.Random(7)
    for number in range(600):
        tokens, patches = dice.choice([(4000, 0), (600, 8000), (2000, 4000)])
        seconds = tokens * prefill_s + patches * encode_s
        pace = pace.learn(tokens, patches, seconds * (50.0 if number % 20 == 7 else dice.uniform(0.8, 1.25)))
    assert pace.prefill_s_per_token == pytest.approx(prefill_s, rel=0.5)
    assert pace.encode_s_per_patch == pytest.approx(encode_s, rel=0.5)


def test_small_requests_and_impossible_times_tell_nothing() -> None:
    assert SEED.learn(100, 100, 5.0) is SEED
    for seconds in (0.0, -1.0, math.inf, math.nan):
        assert SEED.learn(10_000, 0, seconds) is SEED


def test_text_tells_nothing_of_the_encoder() -> None:
    learnt = SEED.learn(10_000, 100, 10.0)
    assert learnt.encode_s_per_patch == SEED.encode_s_per_patch
    assert learnt.prefill_s_per_token > SEED.prefill_s_per_token


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(1e-6, 1e6)), max_size=60))
def test_rates_stay_within_bounds(seen: list[tuple[int, int, float]]) -> None:
    pace = SEED
    for tokens, patches, seconds in seen:
        pace = pace.learn(tokens, patches, seconds)
        assert PREFILL_BOUNDS_S[0] <= pace.prefill_s_per_token <= PREFILL_BOUNDS_S[1]
        assert ENCODE_BOUNDS_S[0] <= pace.encode_s_per_patch <= ENCODE_BOUNDS_S[1]
        assert pace.expected_s(tokens, patches) >= 0
