from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.llava_onevision import LLAVA_ONEVISION
from gateway.models.families.tiled import shape_of
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("llava-hf/llava-onevision-qwen2-7b-ov-hf").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 1485, 0),
        (Size(224, 224), 1485, 0),
        (Size(448, 448), 3699, 0),
        (Size(1280, 720), 5967, 0),
        (Size(1170, 2532), 7393, 0),
        (Size(3840, 2160), 7317, 0),
        (Size(3024, 4032), 7332, 0),
        (Size(3000, 100), 1544, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = LLAVA_ONEVISION.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_a_nested_list_of_images_gets_one_view_each() -> None:
    nested = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), crowd_images=2))
    two = LLAVA_ONEVISION.request_tokens([Size(1280, 720)] * 2, nested)
    assert [(price.tokens, price.vit_patches) for price in two] == [(730, 729)] * 2
    assert LLAVA_ONEVISION.request_tokens([Size(1280, 720)], nested)[0].tokens == 5967
    flat = LLAVA_ONEVISION.request_tokens([Size(1280, 720)] * 3, CHECKPOINT)
    assert [price.tokens for price in flat] == [5967] * 3
