from __future__ import annotations

import numpy as np

from benchmarks.written import MONO, SERIF, Box, Line, Sheet, column, phone, wrapped


def test_lines_are_no_longer_than_asked_for_and_as_many() -> None:
    lines = wrapped(34, 9, start=3)
    assert len(lines) == 9
    assert max(map(len, lines)) <= 34
    assert wrapped(34, 9, start=19) == lines


def test_text_stays_on_its_sheet() -> None:
    sheet = phone()
    assert max(line.y for line in sheet.lines) < sheet.height
    assert max(line.x + 0.6 * line.points * len(line.text) for line in sheet.lines) < 1.2 * sheet.width


def test_boxes_lie_behind_letters_and_the_same_is_drawn_twice() -> None:
    sheet = Sheet(120, 40, 2, column((10, 20), 100, 1, 10, SERIF), [Box(0, 0, 120, 40, (1.0, 0.0, 0.0))])
    drawn = sheet.draw()
    assert (drawn[0, 0] == (255, 0, 0)).all()
    assert (drawn[:, :, 0] < 60).any()
    assert np.array_equal(drawn, sheet.draw())


def test_signs_that_mean_something_to_the_format_are_drawn() -> None:
    plain, signs = (Sheet(90, 20, 2, [Line(5, 14, text, 10, MONO)]).draw() for text in ("      ", "(\\) ()"))
    assert not np.array_equal(plain, signs)
