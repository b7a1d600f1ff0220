from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.mllama import MLLAMA
from gateway.models.families.tiled import shape_of
from gateway.models.tiling import TileEngine
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("meta-llama/Llama-3.2-11B-Vision-Instruct").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 1601, 1),
        (Size(224, 224), 1601, 1),
        (Size(448, 448), 1601, 1),
        (Size(1280, 720), 6404, 1),
        (Size(1170, 2532), 4803, 1),
        (Size(3840, 2160), 6404, 1),
        (Size(3024, 4032), 6404, 1),
        (Size(3000, 100), 6404, 1),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = MLLAMA.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_sglang_books_four_tiles_for_every_image() -> None:
    sglang = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), engine=TileEngine.SGLANG))
    price = MLLAMA.image_tokens(Size(1, 1), sglang)
    assert (price.tokens, price.vit_patches) == (6404, 1601)


def test_embeddings_stand_beside_the_prompt() -> None:
    price = MLLAMA.image_tokens(Size(1280, 720), CHECKPOINT)
    assert (price.position_advance, price.struct_tokens) == (0, 1)


def test_the_image_is_fitted_into_its_canvas_not_stretched() -> None:
    assert MLLAMA.engine_size(Size(4032, 3024), CHECKPOINT) == Size(1120, 1120)
    assert MLLAMA.plan(Size(4032, 3024), CHECKPOINT).size == Size(1120, 840)
    assert MLLAMA.plan(Size(4032, 3024), CHECKPOINT, cap_tokens=3500).size == Size(746, 560)
