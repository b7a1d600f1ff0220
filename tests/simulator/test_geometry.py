from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulator.geometry import GRIDS, AspectRatioError, Family, Grid, family_of_model, fit

QWEN3 = GRIDS[Family.QWEN3_VL]
QWEN2 = GRIDS[Family.QWEN2_5_VL]
CAPPED = Grid(patch_px=16, merge=2, min_pixels=65_536, max_pixels=1280 * 32 * 32)


@pytest.mark.parametrize(
    ("width", "height", "grid", "tokens"),
    [
        # Published anchors of Qwen3.5 and counts that vLLM 0.32.0 reported for Qwen3-VL.
        (224, 224, QWEN3, 64),
        (448, 448, QWEN3, 196),
        (896, 896, QWEN3, 784),
        (1280, 720, QWEN3, 880),
        (640, 480, QWEN3, 300),
        (1, 1, QWEN3, 64),
        (4000, 3000, QWEN3, 11_750),
        (4000, 3000, CAPPED, 1_230),
        # From the real Qwen2-VL and Qwen2.5-VL processors (transformers 5.19.0).
        (1, 1, QWEN2, 4),
        (10, 2000, QWEN2, 29),
        (42, 70, QWEN2, 4),
    ],
)
def test_counts_equal_the_real_processors(width: int, height: int, grid: Grid, tokens: int) -> None:
    assert fit(width, height, grid).tokens == tokens


def test_a_wide_picture_has_more_columns_than_rows() -> None:
    fitted = fit(1280, 720, QWEN3)
    assert (fitted.rows, fitted.columns, fitted.patches) == (22, 40, 3520)


def test_exactly_two_hundred_to_one_passes() -> None:
    assert fit(28, 5600, QWEN2).tokens == 200
    with pytest.raises(AspectRatioError, match=r"smaller than 200, got 200\.0357"):
        fit(28, 5601, QWEN2)


@given(st.integers(1, 9000), st.integers(1, 9000), st.sampled_from([QWEN2, QWEN3, CAPPED]))
def test_every_picture_ends_within_floor_and_cap(width: int, height: int, grid: Grid) -> None:
    if max(width, height) > 200 * min(width, height):
        return
    fitted = fit(width, height, grid)
    area = fitted.tokens * grid.unit_px**2
    assert fitted.rows >= 1
    assert fitted.columns >= 1
    # A strip is allowed to stay above the cap by the one unit that its short side keeps.
    assert area <= grid.max_pixels or 1 in {fitted.rows, fitted.columns}
    assert area >= grid.min_pixels


@given(st.integers(1, 9000), st.integers(1, 9000))
def test_turning_a_picture_turns_its_grid(width: int, height: int) -> None:
    if max(width, height) > 200 * min(width, height):
        return
    upright, turned = fit(width, height, QWEN3), fit(height, width, QWEN3)
    assert (upright.rows, upright.columns) == (turned.columns, turned.rows)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", Family.QWEN2_VL),
        ("Qwen/Qwen2.5-VL-7B-Instruct", Family.QWEN2_5_VL),
        ("Qwen/Qwen3-VL-8B-Instruct", Family.QWEN3_VL),
        ("Qwen/Qwen3.5-9B", Family.QWEN3_5),
        ("tiny-qwen25vl", Family.QWEN2_5_VL),
        ("anything", Family.QWEN3_VL),
    ],
)
def test_a_models_name_tells_its_family(name: str, family: Family) -> None:
    assert family_of_model(name) is family
