from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.growth import slope


@given(st.integers(-1_000, 1_000), st.integers(-(10**6), 10**6), st.integers(3, 600))
def test_the_slope_of_a_line_is_its_slope(rise: int, start: int, count: int) -> None:
    assert abs(slope([(at, start + rise * at) for at in range(count)]) - rise) < 1e-6


def test_one_jump_is_no_growth() -> None:
    assert slope([(at, 1_000.0 if at > 2 else 0.0) for at in range(50)]) == 0.0


def test_too_little_says_nothing() -> None:
    assert slope([]) == slope([(0, 1), (1, 5)]) == 0.0
