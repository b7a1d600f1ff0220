from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reading import distance, error_rate, read_text, version
from benchmarks.written import SANS, Line, Sheet
from gateway.types import Size

WORDS = st.text(alphabet="abc ", max_size=12)


def by_the_table(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row[0] = row[0], at
        for to, wanted in enumerate(other, 1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (letter != wanted))
    return row[-1]


@given(WORDS, WORDS)
def test_the_distance_is_the_tables(one: str, other: str) -> None:
    assert distance(one, other) == by_the_table(one, other) == distance(other, one)


@pytest.mark.parametrize(
    ("read", "written", "rate"),
    [
        ("kitten", "sitting", 3 / 7),
        ("two\n\n lines ", "two lines", 0.0),
        ("", "abc", 1.0),
        ("abc", "", 3.0),
        ("abcdef", "abc", 1.0),
    ],
)
def test_the_rate_is_of_the_letters_written(read: str, written: str, rate: float) -> None:
    assert error_rate(read, written) == rate


def test_what_is_drawn_is_read() -> None:
    sheet = Sheet(300, 60, 3, [Line(10, 25, "Gate 7 opens at 18:52", 16, SANS), Line(10, 48, "(no luggage)", 14, SANS)])
    drawn = sheet.draw()
    assert drawn.shape == (180, 900, 3)
    assert error_rate(read_text(drawn, Size(900, 180)), sheet.text) <= 0.06
    assert error_rate(read_text(np.full_like(drawn, 255), Size(900, 180)), sheet.text) == 1.0
    assert version().startswith("tesseract ")
