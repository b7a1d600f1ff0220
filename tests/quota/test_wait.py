from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.quota.wait import HoldTime, expected_wait_s, retry_after_s


def test_nothing_observed_means_nothing_known() -> None:
    hold = HoldTime()
    assert hold.mean_s is None
    hold.observe(0, 5.0)
    assert hold.mean_s is None


def test_long_reservations_of_many_tokens_weigh_more() -> None:
    hold = HoldTime()
    hold.observe(900, 10.0)
    hold.observe(100, 1.0)
    assert hold.mean_s is not None
    assert 8.9 < hold.mean_s < 9.2


def test_recent_reservations_count_more() -> None:
    hold = HoldTime()
    for _ in range(100):
        hold.observe(10, 20.0)
    for _ in range(100):
        hold.observe(10, 1.0)
    assert hold.mean_s == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(
    ("need", "inflight", "hold_s", "wait_s"),
    [(500, 1000, 8.0, 4.0), (0, 1000, 8.0, 0.0), (-5, 0, None, 0.0), (5, 0, 8.0, None), (5, 100, None, None)],
)
def test_the_wait_is_need_over_drain(need: int, inflight: int, hold_s: float | None, wait_s: float | None) -> None:
    assert expected_wait_s(need, inflight, hold_s) == wait_s


@given(st.floats(allow_nan=False), st.floats(0, 1, exclude_max=True))
def test_what_a_client_is_told_is_bounded_and_never_early(wait_s: float, jitter: float) -> None:
    told = retry_after_s(wait_s, jitter)
    assert 1 <= told <= 75
    assert told >= min(wait_s, 60)


def test_an_unknown_wait_is_the_longest() -> None:
    assert retry_after_s(math.nan, 0.0) == 60
