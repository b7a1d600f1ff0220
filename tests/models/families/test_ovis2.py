from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.ovis2 import OVIS2
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("AIDC-AI/Ovis2-8B").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 0),
        (Size(224, 224), 256, 0),
        (Size(448, 448), 256, 0),
        (Size(1280, 720), 1792, 0),
        (Size(1170, 2532), 2304, 0),
        (Size(3840, 2160), 2304, 0),
        (Size(3024, 4032), 2560, 0),
        (Size(3000, 100), 2048, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = OVIS2.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_the_processors_canvas_lies_across_the_image() -> None:
    """It reads (rows, columns) as (columns, rows): a landscape image is stretched to a portrait canvas."""
    assert OVIS2.engine_size(Size(1280, 720), CHECKPOINT) == Size(896, 1344)
    target = OVIS2.plan(Size(4032, 3024), CHECKPOINT)
    assert target.size.width * 3 == pytest.approx(target.size.height * 4, abs=4)


def test_a_part_may_lose_a_tenth() -> None:
    assert [OVIS2.image_tokens(Size(side, side), CHECKPOINT).tokens for side in (448, 472, 473)] == [256, 256, 1280]
