from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.minicpmv import MINICPMV
from gateway.models.families.tiled import shape_of
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("openbmb/MiniCPM-V-2_6").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 64, 5),
        (Size(224, 224), 64, 5),
        (Size(448, 448), 64, 5),
        (Size(1280, 720), 448, 18),
        (Size(1170, 2532), 576, 24),
        (Size(3840, 2160), 576, 22),
        (Size(3024, 4032), 640, 25),
        (Size(3000, 100), 256, 11),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = MINICPMV.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_the_number_of_an_image_is_written_in_digits() -> None:
    """`<image_id>`, the number, `</image_id>`; the tokenizers of these models split numbers into digits."""
    twelve = MINICPMV.request_tokens([Size(9, 9)] * 12, CHECKPOINT)
    assert [price.struct_tokens for price in twelve] == [5] * 10 + [6] * 2


def test_fewer_slices_are_the_engines_knob() -> None:
    four = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), most=4))
    price = MINICPMV.image_tokens(Size(1280, 720), four)
    assert (price.tokens, price.struct_tokens, price.vit_patches) == (256, 11, 4182)


def test_a_cap_gets_the_area_of_fewer_slices() -> None:
    target = MINICPMV.plan(Size(4032, 3024), CHECKPOINT, cap_tokens=320)
    assert target.reached
    assert target.tokens.tokens == 320
    assert MINICPMV.plan(Size(4032, 3024), CHECKPOINT, cap_tokens=64).size.pixels <= 448 * 448
