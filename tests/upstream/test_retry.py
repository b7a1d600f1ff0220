"""The retry budget, time by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.retry import RetryBudget


def test_requests_pay_for_resends() -> None:
    budget = RetryBudget(0.5, 0.0, limit=1)
    assert budget.take(0.0)
    assert not budget.take(0.0)
    budget.deposit()
    assert not budget.take(0.0)
    budget.deposit()
    assert budget.take(0.0)


def test_a_quiet_gateway_may_still_fail_over() -> None:
    budget = RetryBudget(0.0, 1.0, limit=1)
    assert budget.take(5.0)
    assert not budget.take(5.5)
    assert budget.take(6.0)


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    budget = RetryBudget(0.0, 1.0, limit=1)
    assert budget.take(5.0)
    assert not budget.take(5.0)
    assert not budget.take(1.0)


@pytest.mark.parametrize(("ratio", "floor", "limit"), [(-0.1, 1.0, 5), (0.1, -1.0, 5), (0.1, 1.0, 0)])
def test_nonsense_is_refused(ratio: float, floor: float, limit: float) -> None:
    with pytest.raises(ValueError, match="budget"):
        RetryBudget(ratio, floor, limit)


@given(st.lists(st.booleans(), max_size=300))
def test_resends_stay_within_the_share(takes: list[bool]) -> None:
    budget = RetryBudget(0.2, 0.0)
    granted = 0
    for take in takes:
        if take:
            granted += budget.take(0.0)
        else:
            budget.deposit()
    assert granted <= 10 + 0.2 * takes.count(False) + 1e-6
