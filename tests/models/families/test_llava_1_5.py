from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.llava_1_5 import LLAVA_1_5
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("llava-hf/llava-1.5-7b-hf").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 576, 0),
        (Size(224, 224), 576, 0),
        (Size(448, 448), 576, 0),
        (Size(1280, 720), 576, 0),
        (Size(1170, 2532), 576, 0),
        (Size(3840, 2160), 576, 0),
        (Size(3024, 4032), 576, 0),
        (Size(3000, 100), 576, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = LLAVA_1_5.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_a_photograph_is_shrunk_to_the_tiles_short_side() -> None:
    assert LLAVA_1_5.plan(Size(4032, 3024), CHECKPOINT).size == Size(448, 336)
    assert LLAVA_1_5.plan(Size(3024, 4032), CHECKPOINT).size == Size(336, 448)
    assert LLAVA_1_5.engine_size(Size(4032, 3024), CHECKPOINT) == Size(336, 336)
