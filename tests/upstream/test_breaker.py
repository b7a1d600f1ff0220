"""The circuit breaker, time by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.breaker import Breaker, BreakerState


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(3, 2.0, 8.0)
    for _ in range(2):
        breaker.failed(0.0)
    assert breaker.succeeded()
    for _ in range(2):
        breaker.failed(0.0)
    assert breaker.allows(0.0)
    breaker.failed(0.0)
    assert breaker.state(1.9) is BreakerState.OPEN
    assert not breaker.allows(1.9)


def test_half_open_closes_by_success_and_opens_longer_by_failure() -> None:
    breaker = Breaker(1, 2.0, 5.0)
    breaker.failed(0.0)
    assert breaker.state(2.0) is BreakerState.HALF_OPEN
    breaker.failed(2.0)
    assert not breaker.allows(5.9)
    assert breaker.allows(6.0)
    breaker.failed(6.0)
    assert breaker.allows(11.0), "the limit"
    assert breaker.succeeded()
    assert breaker.state(11.0) is BreakerState.CLOSED
    breaker.failed(11.0)
    assert breaker.allows(13.0), "back to the first pause"


def test_half_open_lets_one_try_at_a_time() -> None:
    breaker = Breaker(1, 2.0, 8.0)
    assert not breaker.tried(0.0), "closed: no trial"
    breaker.failed(0.0)
    assert not breaker.tried(1.0), "open: a last resort, no trial"
    assert breaker.tried(2.0)
    assert not breaker.allows(3.9), "somebody tries"
    assert breaker.allows(4.0), "a trial of which nothing is heard holds up nobody for ever"
    assert breaker.tried(4.0)
    assert breaker.succeeded()
    assert breaker.allows(4.0)
    assert breaker.is_closed


def test_the_pause_can_be_ended_early() -> None:
    breaker = Breaker(1, 2.0, 8.0)
    breaker.half_open(0.0)
    assert breaker.is_closed, "there is no pause"
    breaker.failed(0.0)
    breaker.half_open(0.5)
    assert breaker.state(0.5) is BreakerState.HALF_OPEN
    breaker.failed(0.5)
    assert not breaker.allows(4.4), "the next pause is the longer one all the same"


def test_news_while_open_changes_nothing() -> None:
    breaker = Breaker(1, 2.0, 8.0)
    breaker.failed(0.0)
    breaker.failed(1.0)
    assert breaker.allows(2.0)


def test_success_tells_whether_it_changed_anything() -> None:
    breaker = Breaker(2, 1.0, 1.0)
    assert not breaker.succeeded()
    breaker.failed(0.0)
    assert breaker.succeeded()
    assert not breaker.succeeded()


@pytest.mark.parametrize(("failures", "open_s", "limit_s"), [(0, 1.0, 1.0), (1, 0.0, 1.0), (1, 2.0, 1.0)])
def test_nonsense_is_refused(failures: int, open_s: float, limit_s: float) -> None:
    with pytest.raises(ValueError, match="breaker"):
        Breaker(failures, open_s, limit_s)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 10)), max_size=50))
def test_it_always_lets_somebody_try_within_the_limit(events: list[tuple[bool, float]]) -> None:
    breaker = Breaker(3, 1.0, 4.0)
    now_s = 0.0
    for success, pause_s in events:
        now_s += pause_s
        if success:
            breaker.succeeded()
            assert breaker.allows(now_s)
        else:
            breaker.failed(now_s)
        assert breaker.allows(now_s + 4.0)
