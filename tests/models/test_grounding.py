"""Coordinates of answers: which numbers they are, where they lead, and that cutting a text changes nothing."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.grounding import CoordinateForm, CoordinateText, Frame, mapped
from gateway.types import Size

ORIGINAL = Size(4032, 3024)
ABSOLUTE = Frame.of(CoordinateForm.ABSOLUTE, Size(1344, 1008), ORIGINAL)
THOUSANDTHS = Frame.of(CoordinateForm.THOUSANDTHS, Size(1312, 960), ORIGINAL)
PAIRS = Frame.of(CoordinateForm.THOUSANDTHS_IN_PAIRS, Size(1316, 980), ORIGINAL)


@pytest.mark.parametrize(
    ("frame", "text", "expected"),
    [
        (ABSOLUTE, '{"bbox_2d": [10, 20, 100, 200], "label": "a"}', '{"bbox_2d": [30, 60, 300, 600], "label": "a"}'),
        (ABSOLUTE, '{"point_2d":[1344,1008]}', '{"point_2d":[4032,3024]}'),
        (ABSOLUTE, '"point_2d" :\n [[1, 2], [3.5, 4]]', '"point_2d" :\n [[3, 6], [11, 12]]'),
        (ABSOLUTE, '"bbox_2d": [-5, 0, 9999, 9999]', '"bbox_2d": [0, 0, 4032, 3024]'),
        (ABSOLUTE, '<points x1="10" y1="20" alt="10 x">x</points>', '<points x1="30" y1="60" alt="10 x">x</points>'),
        (ABSOLUTE, '<point x="10.5" y="20" alt="a">', '<point x="32" y="60" alt="a">'),
        (THOUSANDTHS, '{"bbox_2d": [0, 500, 250, 1000]}', '{"bbox_2d": [0, 1512, 1008, 3024]}'),
        (PAIRS, "<|box_start|>(100,200),(500,1000)<|box_end|>", "<|box_start|>(403,605),(2016,3024)<|box_end|>"),
        (PAIRS, "a cat (100,200),(500,1000).", "a cat (403,605),(2016,3024)."),
        # What is no list of points stays as it is.
        (ABSOLUTE, '"bbox_2d": [1, 2, 3]', '"bbox_2d": [1, 2, 3]'),
        (ABSOLUTE, '"bbox_2d": "[1, 2, 3, 4]"', '"bbox_2d": "[1, 2, 3, 4]"'),
        (ABSOLUTE, "bbox_2d: [1, 2, 3, 4] and (1,2),(3,4)", "bbox_2d: [1, 2, 3, 4] and (1,2),(3,4)"),
        (ABSOLUTE, '"bbox_2d": [10, 20, 100', '"bbox_2d": [10, 20, 100'),
        (PAIRS, "f(1,2) = (3, 4)", "f(1,2) = (3, 4)"),
        (Frame.of(CoordinateForm.NONE, Size(9, 9), ORIGINAL), '"bbox_2d": [1, 2]', '"bbox_2d": [1, 2]'),
    ],
)  # fmt: skip
def test_coordinates_are_taken_back_and_nothing_else_is_touched(frame: Frame, text: str, expected: str) -> None:
    assert mapped(text, frame) == expected


PIECES = st.sampled_from([
    '"bbox_2d"', '"point_2d"', '"bbox', ": ", ":", "[", "]", "12", "3", ".", ",", " ", "-", "{", "}", "(", ")", "(1,2)",
    ",(3,4)", "<points ", "<po", '<point x="1" y="2">', 'x1="5"', ">", "<", '"', "label", "\n", "(10,20),(30,40)",
])  # fmt: skip


@given(st.lists(PIECES, max_size=30), st.sampled_from([ABSOLUTE, THOUSANDTHS, PAIRS]))
def test_however_a_text_is_cut_it_comes_out_the_same(pieces: list[str], frame: Frame) -> None:
    text = "".join(pieces)
    rewriter = CoordinateText(frame)
    cut = [rewriter.feed(character) for character in text]
    assert "".join(cut) + rewriter.finish() == mapped(text, frame)
    assert not rewriter.holds
    rewriter = CoordinateText(frame)
    assert "".join(map(rewriter.feed, pieces)) + rewriter.finish() == mapped(text, frame)


@given(st.text(alphabet="abc xyz\n.!?äß", max_size=200))
def test_plain_text_never_waits(text: str) -> None:
    rewriter = CoordinateText(ABSOLUTE)
    assert rewriter.feed(text) == text
    assert not rewriter.holds


def test_what_waits_is_bounded() -> None:
    rewriter = CoordinateText(ABSOLUTE)
    out = rewriter.feed('"bbox_2d": [') + "".join(rewriter.feed("1," * 100) for _ in range(200))
    assert len(out) > 30_000
    assert (out + rewriter.finish()).count("1") == 20_000


@given(
    st.lists(st.tuples(st.integers(0, 1344), st.integers(0, 1008)), min_size=2, max_size=2),
    st.sampled_from([Size(4032, 3024), Size(1344, 1008), Size(100, 75)]),
)
def test_a_mapped_box_lies_in_the_original(box: list[tuple[int, int]], original: Size) -> None:
    frame = Frame.of(CoordinateForm.ABSOLUTE, Size(1344, 1008), original)
    flat = [value for point in box for value in point]
    numbers = [int(n) for n in re.findall(r"\d+", mapped(f'"bbox_2d": {json.dumps(flat)}', frame).split(":")[1])]
    for given_value, value, (space, side) in zip(
        flat, numbers, [(1344, original.width), (1008, original.height)] * 2, strict=True
    ):
        assert 0 <= value <= side
        assert abs(value - given_value * side / space) <= 0.5 + 1e-9
