from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.command_a_vision import COMMAND_A_VISION
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("CohereLabs/command-a-vision-07-2025").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 3),
        (Size(224, 224), 256, 3),
        (Size(448, 448), 256, 3),
        (Size(1280, 720), 1792, 9),
        (Size(1170, 2532), 2816, 13),
        (Size(3840, 2160), 3328, 15),
        (Size(3024, 4032), 3328, 15),
        (Size(3000, 100), 1792, 9),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = COMMAND_A_VISION.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_a_cap_gets_a_smaller_canvas() -> None:
    target = COMMAND_A_VISION.plan(Size(4032, 3024), CHECKPOINT, cap_tokens=1280)
    assert target.reached
    assert target.tokens.tokens <= 1280
    assert COMMAND_A_VISION.engine_size(Size(513, 512), CHECKPOINT) == Size(1024, 512)
