from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.deepseek_ocr import DEEPSEEK_OCR, DEEPSEEK_OCR2
from gateway.models.families.tiled import shape_of
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("deepseek-ai/DeepSeek-OCR").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 273, 0),
        (Size(224, 224), 273, 0),
        (Size(448, 448), 273, 0),
        (Size(1280, 720), 483, 0),
        (Size(1170, 2532), 493, 0),
        (Size(3840, 2160), 483, 0),
        (Size(3024, 4032), 903, 0),
        (Size(3000, 100), 883, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = DEEPSEEK_OCR.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_the_second_model_has_no_separators() -> None:
    second = shipped_catalog().find("deepseek-ai/DeepSeek-OCR-2").checkpoint
    sizes = (Size(1, 1), Size(448, 448), Size(1280, 720), Size(1170, 2532), Size(3024, 4032), Size(3000, 100))
    assert [DEEPSEEK_OCR2.image_tokens(size, second).tokens for size in sizes] == [257, 257, 545, 545, 1121, 1121]


def test_without_tiles_every_image_is_one_view() -> None:
    uncut = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), side=1024, least=1, most=1))
    assert DEEPSEEK_OCR.image_tokens(Size(3000, 100), uncut).tokens == 273
    assert DEEPSEEK_OCR.engine_size(Size(3000, 100), uncut) == Size(1024, 1024)


def test_a_cap_gets_the_largest_size_that_is_not_cut() -> None:
    target = DEEPSEEK_OCR.plan(Size(1280, 720), CHECKPOINT, cap_tokens=300)
    assert (target.size, target.tokens.tokens) == (Size(640, 360), 273)
