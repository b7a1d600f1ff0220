from __future__ import annotations

import pytest

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.families.step3_vl import STEP3_VL
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("stepfun-ai/step3").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 169, 2),
        (Size(224, 224), 169, 2),
        (Size(448, 448), 169, 2),
        (Size(1280, 720), 655, 15),
        (Size(1170, 2532), 1384, 36),
        (Size(3840, 2160), 2113, 53),
        (Size(3024, 4032), 2599, 67),
        (Size(3000, 100), 2599, 62),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = STEP3_VL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_windows_begin_at_728() -> None:
    sizes = (Size(727, 727), Size(728, 728), Size(700, 400), Size(3000, 20))
    assert [STEP3_VL.image_tokens(size, CHECKPOINT).tokens for size in sizes] == [169, 493, 331, 3085]


def test_a_photograph_is_shrunk_to_3024() -> None:
    assert STEP3_VL.plan(Size(4032, 3024), CHECKPOINT).size == Size(3024, 2268)
    assert STEP3_VL.plan(Size(4032, 4032), CHECKPOINT).size == Size(3024, 3024)
    assert STEP3_VL.plan(Size(4032, 20), CHECKPOINT).size == Size(4032, 20)


@pytest.mark.parametrize("size", [Size(96_769, 32), Size(32, 96_769), Size(1_000_000, 33)])
def test_a_strip_of_which_nothing_is_left_is_refused(size: Size) -> None:
    """`ImagePatcher.get_num_patches` (vLLM 0.32.0) raises `ZeroDivisionError` for these, and for none shorter."""
    for question in (STEP3_VL.image_tokens, STEP3_VL.engine_size, STEP3_VL.normalised, STEP3_VL.plan):
        with pytest.raises(AspectRatioExceeded):
            question(size, CHECKPOINT)


@pytest.mark.parametrize(("size", "tokens"), [(Size(96_768, 32), 245_113), (Size(96_769, 31), 3_085)])
def test_the_longest_strips_that_are_left_something(size: Size, tokens: int) -> None:
    assert STEP3_VL.image_tokens(size, CHECKPOINT).tokens == tokens
