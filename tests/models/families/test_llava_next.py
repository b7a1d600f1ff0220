from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.llava_next import LLAVA_NEXT
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("llava-hf/llava-v1.6-mistral-7b-hf").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 1176, 0),
        (Size(224, 224), 1176, 0),
        (Size(448, 448), 2928, 0),
        (Size(1280, 720), 1948, 0),
        (Size(1170, 2532), 1876, 0),
        (Size(3840, 2160), 1948, 0),
        (Size(3024, 4032), 2352, 0),
        (Size(3000, 100), 722, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = LLAVA_NEXT.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_the_canvas_is_not_the_content() -> None:
    """1280x720 fills 672x378 of its canvas; sending the canvas itself would cost 980 tokens more."""
    target = LLAVA_NEXT.plan(Size(1280, 720), CHECKPOINT)
    assert (target.size, target.tokens.tokens) == (Size(672, 378), 1948)
    assert LLAVA_NEXT.image_tokens(Size(672, 672), CHECKPOINT).tokens == 2928
