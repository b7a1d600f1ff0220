from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.text import (
    DENSE_BYTES_PER_TOKEN,
    SEED_BYTES_PER_TOKEN,
    ChatTemplate,
    RatioLearner,
    estimate_text_tokens,
)

CHATML = ChatTemplate(per_message_tokens=5, per_request_tokens=3, default_system_tokens=11)


@given(st.integers(0, 10**9), st.floats(0.5, 20), st.floats(0.5, 5))
def test_bounds_enclose_the_expected_count(byte_count: int, ratio: float, dense: float) -> None:
    estimate = estimate_text_tokens(byte_count, ratio, dense_bytes_per_token=dense)
    assert 0 <= estimate.lower_bound <= estimate.expected <= estimate.upper_bound <= byte_count


def test_ordinary_prose() -> None:
    estimate = estimate_text_tokens(4_000, 4.0)
    assert (estimate.expected, estimate.lower_bound, estimate.upper_bound) == (1000, 16, 128 + 1936)


def test_a_short_text_may_be_nothing_but_digits() -> None:
    assert estimate_text_tokens(100, 4.0).upper_bound == 100


def test_no_text_is_no_tokens() -> None:
    estimate = estimate_text_tokens(0, 4.0)
    assert (estimate.expected, estimate.lower_bound, estimate.upper_bound) == (0, 0, 0)


@pytest.mark.parametrize(("byte_count", "ratio"), [(-1, 4.0), (1, 0.0), (1, -2.0), (1, math.nan)])
def test_what_cannot_be_estimated_is_refused(byte_count: int, ratio: float) -> None:
    with pytest.raises(ValueError, match="byte_count"):
        estimate_text_tokens(byte_count, ratio)


def test_a_template_adds_per_message_per_request_and_for_a_default_system_message() -> None:
    assert CHATML.overhead_tokens(2) == 2 * 5 + 3 + 11
    assert CHATML.overhead_tokens(2, has_system=True) == 2 * 5 + 3


def test_the_learner_starts_at_the_seed_and_takes_the_first_sample_whole() -> None:
    learner = RatioLearner()
    assert learner.bytes_per_token == SEED_BYTES_PER_TOKEN
    assert learner.update(3_000, 1_000).bytes_per_token == pytest.approx(3.0)


def test_the_learner_follows_the_traffic() -> None:
    learner = RatioLearner()
    for _ in range(200):
        learner = learner.update(4_500, 1_000)
    for _ in range(200):
        learner = learner.update(3_000, 1_000)
    assert learner.bytes_per_token == pytest.approx(3.0, rel=0.01)
    assert learner.samples == 400
    assert learner.estimate(3_000).expected == pytest.approx(1_000, rel=0.01)


def test_one_dense_text_widens_the_upper_bound_at_once_and_not_for_ever() -> None:
    learner = RatioLearner().update(4_000, 3_200)
    assert learner.dense_bytes_per_token == pytest.approx(1.25)
    assert learner.estimate(4_000).upper_bound >= 3_200
    for _ in range(200):
        learner = learner.update(4_000, 1_000)
    assert learner.dense_bytes_per_token == pytest.approx(DENSE_BYTES_PER_TOKEN, rel=0.01)


@pytest.mark.parametrize(("byte_count", "tokens"), [(150, 40), (1_000, 0), (1_000, -5), (1_000, 1_001), (100_000, 1)])
def test_what_cannot_be_teaches_nothing(byte_count: int, tokens: int) -> None:
    learner = RatioLearner()
    assert learner.update(byte_count, tokens) is learner


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(-5, 10**6)), max_size=30))
def test_whatever_usage_says_the_ratio_stays_usable(samples: list[tuple[int, int]]) -> None:
    learner = RatioLearner()
    for byte_count, tokens in samples:
        learner = learner.update(byte_count, tokens)
    assert 1 <= learner.bytes_per_token <= 256
    assert 1 <= learner.dense_bytes_per_token <= DENSE_BYTES_PER_TOKEN
    assert learner.estimate(10_000).upper_bound >= learner.estimate(10_000).lower_bound
