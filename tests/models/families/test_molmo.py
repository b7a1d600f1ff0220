from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.molmo import MOLMO
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("allenai/Molmo-7B-D-0924").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 288, 28),
        (Size(224, 224), 288, 28),
        (Size(448, 448), 544, 36),
        (Size(1280, 720), 1152, 44),
        (Size(1170, 2532), 1024, 60),
        (Size(3840, 2160), 1152, 44),
        (Size(3024, 4032), 1152, 52),
        (Size(3000, 100), 288, 28),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = MOLMO.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_an_image_below_the_margin_is_one_crop() -> None:
    for size in (Size(112, 112), Size(112, 4000), Size(111, 4000), Size(4000, 90)):
        assert MOLMO.image_tokens(size, CHECKPOINT).vit_patches % 577 == 0
    assert MOLMO.image_tokens(Size(111, 4000), CHECKPOINT).tokens == 288


def test_a_cap_gets_a_whole_number_of_windows() -> None:
    target = MOLMO.plan(Size(4032, 3024), CHECKPOINT, cap_tokens=560)
    assert target.reached
    assert target.size.width == 560 or target.size.height in (336, 560)
