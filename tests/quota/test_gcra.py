from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.quota.gcra import (
    MAX_US,
    MICROSECONDS,
    Rate,
    charged,
    cost_us,
    refunded,
    remaining,
    reset_us,
    wait_us,
)

RATES = st.builds(
    Rate, st.integers(1, 10**9), st.sampled_from([1, 60, 3_600, 86_400]), st.none() | st.integers(1, 10**9)
)
NOW_US = 1_800_000_000 * MICROSECONDS
TEN_A_MINUTE = Rate(10, 60)


def test_a_minutes_worth_at_once_then_one_every_six_seconds() -> None:
    tat_us = 0
    for left in range(9, -1, -1):
        tat_us = charged(tat_us, NOW_US, cost_us(1, TEN_A_MINUTE))
        assert wait_us(tat_us, NOW_US, TEN_A_MINUTE.capacity_us) == 0
        assert remaining(tat_us, NOW_US, TEN_A_MINUTE) == left
    assert reset_us(tat_us, NOW_US) == 60 * MICROSECONDS
    assert wait_us(charged(tat_us, NOW_US, cost_us(1, TEN_A_MINUTE)), NOW_US, TEN_A_MINUTE.capacity_us) == 6_000_000
    assert remaining(tat_us, NOW_US + 6_000_000, TEN_A_MINUTE) == 1
    assert reset_us(tat_us, NOW_US + 60_000_000) == 0


def test_a_burst_bounds_what_comes_at_once() -> None:
    rate = Rate(600, 60, burst=5)
    assert rate.capacity_us == 500_000
    assert remaining(0, NOW_US, rate) == 5
    assert wait_us(charged(0, NOW_US, cost_us(6, rate)), NOW_US, rate.capacity_us) == 100_000


def test_a_refund_gives_back_what_has_not_drained() -> None:
    tat_us = charged(0, NOW_US, cost_us(8, TEN_A_MINUTE))
    six = cost_us(6, TEN_A_MINUTE)
    assert remaining(refunded(tat_us, tat_us, NOW_US, six), NOW_US, TEN_A_MINUTE) == 8
    later_us = NOW_US + 30 * MICROSECONDS  # five of the eight have drained, three are left to give back
    assert remaining(refunded(tat_us, tat_us, later_us, six), later_us, TEN_A_MINUTE) == 10
    assert refunded(tat_us, tat_us, tat_us + 1, six) == tat_us


def test_an_extra_is_a_debt_that_the_next_charge_waits_for() -> None:
    tat_us = charged(charged(0, NOW_US, cost_us(10, TEN_A_MINUTE)), NOW_US, cost_us(10, TEN_A_MINUTE))
    assert remaining(tat_us, NOW_US, TEN_A_MINUTE) == 0
    assert wait_us(charged(tat_us, NOW_US, 0), NOW_US, TEN_A_MINUTE.capacity_us) == 60 * MICROSECONDS


@given(RATES, st.lists(st.tuples(st.integers(0, 10**8), st.integers(0, 10**9)), max_size=30))
def test_no_window_admits_more_than_the_burst_and_what_the_rate_adds(rate: Rate, steps: list[tuple[int, int]]) -> None:
    """From the first charge on: admitted <= burst + rate x elapsed; every number fits a double."""
    tat_us, now_us, admitted = 0, NOW_US, 0
    for pause_us, amount in steps:
        now_us += pause_us
        candidate_us = charged(tat_us, now_us, cost_us(amount, rate))
        assert candidate_us < 2**53
        if wait_us(candidate_us, now_us, rate.capacity_us) == 0:
            tat_us = candidate_us
            admitted += amount
        elapsed_us = now_us - NOW_US
        most = rate.burst_amount + rate.amount * elapsed_us / (rate.period_s * MICROSECONDS)
        assert admitted <= most + 1e-6 * most
        assert remaining(tat_us, now_us, rate) <= rate.burst_amount


@given(RATES, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**10))
def test_refunds_never_go_below_what_was_used(rate: Rate, estimate: int, used: int, pause_us: int) -> None:
    """A lone charge that is corrected never leaves less in the bucket than charging the truth would have."""
    used = min(used, estimate)
    tat_us = charged(0, NOW_US, cost_us(estimate, rate))
    surplus_us = cost_us(estimate, rate) - cost_us(used, rate)
    now_us = NOW_US + pause_us
    corrected_us = refunded(tat_us, tat_us, now_us, surplus_us)
    truth_us = charged(0, NOW_US, cost_us(used, rate))
    assert reset_us(corrected_us, now_us) == reset_us(truth_us, now_us)


@given(RATES, st.integers(0, 10**18))
def test_costs_are_capped_and_never_rounded_down(rate: Rate, amount: int) -> None:
    cost = cost_us(amount, rate)
    assert 0 <= cost <= MAX_US
    assert cost == MAX_US or cost * rate.amount >= amount * rate.period_s * MICROSECONDS
