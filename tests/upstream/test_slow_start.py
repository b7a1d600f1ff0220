"""The share of a backend that has just come back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.slow_start import LEAST, ramp


def test_it_begins_small_and_grows_to_the_whole() -> None:
    assert [ramp(age_s, 30.0) for age_s in (0.0, 15.0, 30.0, 99.0)] == [LEAST, 0.5, 1.0, 1.0]


def test_who_was_always_there_and_who_needs_none_gets_all() -> None:
    assert ramp(None, 30.0) == ramp(0.0, 0.0) == 1.0


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e4))
def test_it_never_shrinks_and_stays_a_share(younger_s: float, older_s: float, window_s: float) -> None:
    younger_s, older_s = sorted((younger_s, older_s))
    assert LEAST <= ramp(younger_s, window_s) <= ramp(older_s, window_s) <= 1.0
