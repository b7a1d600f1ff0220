from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.llama4 import LLAMA4
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("meta-llama/Llama-4-Scout-17B-16E-Instruct").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 144, 3),
        (Size(224, 224), 144, 3),
        (Size(448, 448), 720, 7),
        (Size(1280, 720), 1872, 15),
        (Size(1170, 2532), 2304, 18),
        (Size(3840, 2160), 2304, 18),
        (Size(3024, 4032), 1872, 15),
        (Size(3000, 100), 1440, 12),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = LLAMA4.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_a_photograph_is_fitted_into_its_canvas() -> None:
    assert LLAMA4.engine_size(Size(4032, 3024), CHECKPOINT) == Size(1344, 1008)
    assert LLAMA4.plan(Size(4000, 3100), CHECKPOINT).size == Size(1344, 1041)


def test_a_small_image_is_enlarged_to_one_tile_at_most() -> None:
    assert LLAMA4.engine_size(Size(100, 50), CHECKPOINT) == Size(336, 336)
    assert LLAMA4.plan(Size(100, 50), CHECKPOINT).size == Size(100, 50)
