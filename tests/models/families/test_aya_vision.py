from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.aya_vision import AYA_VISION
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("CohereLabs/aya-vision-8b").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 169, 3),
        (Size(224, 224), 169, 3),
        (Size(448, 448), 169, 3),
        (Size(1280, 720), 1521, 11),
        (Size(1170, 2532), 1521, 11),
        (Size(3840, 2160), 1521, 11),
        (Size(3024, 4032), 2197, 15),
        (Size(3000, 100), 2197, 15),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = AYA_VISION.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_the_tag_of_each_tile_is_structure() -> None:
    price = AYA_VISION.image_tokens(Size(1280, 720), CHECKPOINT)
    assert (price.tokens // 169, price.struct_tokens, price.vit_patches) == (9, 2 + 9, 9 * 676)
    assert AYA_VISION.plan(Size(4032, 3024), CHECKPOINT).size == Size(1456, 1092)
