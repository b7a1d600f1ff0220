from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.deepseek_vl2 import DEEPSEEK_VL2, padded
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("deepseek-ai/deepseek-vl2-small").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 421, 0),
        (Size(224, 224), 421, 0),
        (Size(448, 448), 1023, 0),
        (Size(1280, 720), 1807, 0),
        (Size(1170, 2532), 1835, 0),
        (Size(3840, 2160), 1807, 0),
        (Size(3024, 4032), 2017, 0),
        (Size(3000, 100), 1793, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = DEEPSEEK_VL2.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_three_images_of_one_request_are_not_cut() -> None:
    sizes = [Size(1280, 720), Size(1, 1), Size(3000, 100)]
    assert [price.tokens for price in DEEPSEEK_VL2.request_tokens(sizes[:2], CHECKPOINT)] == [1807, 421]
    assert [price.tokens for price in DEEPSEEK_VL2.request_tokens(sizes, CHECKPOINT)] == [421] * 3


def test_a_strip_keeps_one_pixel_in_its_canvas() -> None:
    assert DEEPSEEK_VL2.plan(Size(90_000, 1), CHECKPOINT).reached
    assert padded(Size(90_000, 1), 384, 384) == Size(384, 1)
    assert padded(Size(1, 90_000), 384, 384) == Size(1, 384)
    assert padded(Size(5, 5), 384, 384) == Size(384, 384)
