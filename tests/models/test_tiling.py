from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.tiling import (
    closest_by_area,
    effective_pin,
    nearest_grid,
    nearest_largest_grid,
    refuse_strip,
    scales,
    shrunk_to,
    shrunk_to_area,
    single_precision,
    split_by_area,
    stretched_grids,
    tightest_grid,
)
from gateway.types import Size

SIDES = st.one_of(st.integers(1, 100_000), st.integers(1, 3_000))
SIZES = st.builds(Size, SIDES, SIDES)


@given(SIZES, st.integers(1, 40))
def test_every_rule_keeps_its_limit_of_tiles(size: Size, most: int) -> None:
    across, down = scales(size.width, 448, most), scales(size.height, 448, most)
    pins = [(rows, columns) for rows in range(1, 7) for columns in range(1, 7)]
    for columns, rows in (
        nearest_grid(size, 448, most),
        nearest_largest_grid(size, most),
        closest_by_area(size, 448, most),
        tightest_grid(across, down, most),
        split_by_area(size, 448, most) or (1, 1),
    ):
        assert columns >= 1
        assert rows >= 1
        assert columns * rows <= most
    assert effective_pin(size, 384, pins)[::-1] in pins


def test_of_equal_aspects_the_larger_grid_needs_half_its_pixels() -> None:
    assert nearest_grid(Size(633, 633), 448, 12) == (1, 1)
    assert nearest_grid(Size(634, 634), 448, 12) == (2, 2)
    assert nearest_grid(Size(951, 951), 448, 12) == (3, 3)
    assert nearest_largest_grid(Size(1, 1), 12) == (3, 3)


def test_a_least_number_of_tiles_leaves_small_grids_out() -> None:
    assert nearest_grid(Size(641, 641), 640, 6, least=2) == (2, 2)


def test_the_tightest_canvas_prefers_enlarging_then_few_tiles() -> None:
    assert tightest_grid([0.5, 1.0, 1.5], [0.9, 1.8, 2.7], 3) == (2, 1)
    assert tightest_grid([0.5, 1.0, 1.5, 2.0], [0.9, 1.8, 2.7, 3.6], 4) == (2, 2)
    assert tightest_grid([2.0, 4.0], [2.0, 4.0], 2) == (1, 1)
    assert tightest_grid([-2.0, -4.0], [-3.0, -6.0], 2) == (1, 1)


def test_a_length_of_nothing_has_endless_scales() -> None:
    assert scales(0, 224, 2) == [inf, inf]
    assert scales(-112, 224, 2) == [-2.0, -4.0]


def test_scales_are_compared_as_the_processor_stores_them() -> None:
    assert single_precision([1 / 3]) == [0.3333333432674408]


def test_slices_are_split_as_squarely_as_can_be() -> None:
    assert split_by_area(Size(448, 448), 448, 9) is None
    assert split_by_area(Size(449, 448), 448, 9) == (2, 1)
    assert split_by_area(Size(1280, 720), 448, 9) == (3, 2)
    assert split_by_area(Size(9000, 30), 448, 9) == (3, 1)


def test_the_first_pin_that_keeps_most_and_wastes_least_wins() -> None:
    pins = [(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)]
    assert effective_pin(Size(1, 1), 336, pins) == (2, 1)
    assert effective_pin(Size(90_000, 1), 336, pins) == (2, 1)


@given(SIZES, st.lists(st.integers(1, 5_000), max_size=5), st.integers(1, 10_000_000))
def test_shrinking_never_enlarges(size: Size, lengths: list[int], pixels: int) -> None:
    for shrunk in [*shrunk_to(size, lengths), shrunk_to_area(size, pixels)]:
        assert 1 <= shrunk.width <= size.width
        assert 1 <= shrunk.height <= size.height
    assert shrunk_to_area(size, pixels).pixels <= pixels


@given(SIZES, st.integers(1, 12))
def test_a_stretched_grid_has_no_more_pixels_than_the_image(size: Size, most: int) -> None:
    for canvas in stretched_grids(size, 448, lambda limit: nearest_grid(size, 448, limit), most):
        assert canvas.pixels <= size.pixels


def test_a_refused_strip_says_what_it_is() -> None:
    with pytest.raises(AspectRatioExceeded, match=r"900x2, 450\.0:1"):
        refuse_strip(Size(900, 2))
