from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.qwen3_vl import QWEN3_VL
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("Qwen/Qwen3.5-0.8B").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        (Size(1, 1), 64),
        (Size(224, 224), 64),
        (Size(448, 448), 196),
        (Size(896, 896), 784),
        (Size(1280, 720), 880),
        (Size(1170, 2532), 2923),
        (Size(3840, 2160), 8160),
        (Size(3024, 4032), 11_844),
        (Size(3000, 100), 282),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int) -> None:
    assert QWEN3_VL.image_tokens(size, CHECKPOINT).tokens == tokens


def test_720p_is_44_by_80_patches_and_advances_by_40() -> None:
    price = QWEN3_VL.image_tokens(Size(1280, 720), CHECKPOINT)
    assert (price.grid, price.position_advance, price.vit_patches) == ((1, 44, 80), 40, 3520)
    assert (price.struct_tokens, price.wrapper_tokens, price.prompt_tokens) == (0, 2, 882)


def test_a_phone_screenshot_fits_the_usual_operators_cap() -> None:
    target = QWEN3_VL.plan(Size(1170, 2532), CHECKPOINT, cap_pixels=1280 * 32 * 32)
    assert target.reached
    assert target.tokens.tokens <= 1280
    assert target.tokens == QWEN3_VL.image_tokens(Size(1170, 2532), CHECKPOINT.with_(max_pixels=1280 * 32 * 32))
