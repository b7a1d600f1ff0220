"""The covering families' promises that their rules share: the best grid of the aspect, in integers."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import Undecodable
from gateway.models.catalog import shipped_catalog
from gateway.models.families import family_of
from gateway.models.families.covering import largest_grid
from gateway.types import Size
from tests.models.families.promises import plan

CHECKPOINTS = [
    shipped_catalog().find(name).checkpoint
    for name in ("moonshotai/Kimi-VL-A3B-Instruct", "moonshotai/Kimi-K2.5", "mistral-community/pixtral-12b")
]


def chain(long: int, short: int, longest: int) -> list[tuple[int, int]]:
    """Every grid that covers some scaling of the aspect, largest last: each ends where one side is whole cells."""
    by_length = [(along, -(-along * short // long)) for along in range(1, longest + 1)]
    by_width = [(-(-across * long // short), across) for across in range(1, longest + 1)]
    return sorted({grid for grid in by_length + by_width if max(grid) <= longest}, key=lambda grid: grid[0] * grid[1])


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 400), st.integers(1, 60))
@example(57, 29, 5, 60)
@example(1000, 1, 7, 5)
def test_the_largest_grid_is_the_best_that_a_search_finds(one: int, other: int, cells: int, longest: int) -> None:
    long, short = max(one, other), min(one, other)
    along, across = largest_grid(long, short, cells, longest)
    best = [grid for grid in chain(long, short, longest) if grid[0] * grid[1] <= cells][-1]
    assert along * across == best[0] * best[1]
    assert (along, across) in chain(long, short, longest)


def test_what_allows_nothing_names_the_cap() -> None:
    for pixels, tokens, name in ((0, None, "cap_pixels"), (None, 0, "cap_tokens")):
        with pytest.raises(ValueError, match=name):
            plan(Size(100, 100), CHECKPOINTS[0], pixels, tokens)


@pytest.mark.parametrize("size", [Size(0, 10), Size(10, 0), Size(-1, 5)])
def test_an_image_without_area_is_undecodable(size: Size) -> None:
    for checkpoint in CHECKPOINTS:
        family = family_of(checkpoint.family)
        for question in (family.image_tokens, family.engine_size, family.normalised, plan):
            with pytest.raises(Undecodable):
                question(size, checkpoint)


def test_a_cap_below_one_cell_gets_one_cell() -> None:
    for checkpoint in CHECKPOINTS:
        target = plan(Size(500, 400), checkpoint, 100)
        assert (target.reached, target.tokens.tokens) == (False, 1)
        assert plan(Size(5, 4), checkpoint, 19).size == Size(5, 4)


def test_padding_keeps_the_aspect_and_stretching_keeps_whole_cells() -> None:
    kimi, _, pixtral = CHECKPOINTS
    padded = plan(Size(1600, 900), kimi, None, 40)
    assert (padded.size, padded.tokens.tokens) == (Size(224, 126), 40)
    stretched = plan(Size(1600, 900), pixtral, None, 40)
    assert (stretched.size, stretched.tokens.tokens) == (Size(128, 80), 40)
