from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.idefics3 import IDEFICS3, SMOLVLM
from gateway.models.families.tiled import shape_of
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("HuggingFaceM4/Idefics3-8B-Llama3").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 2873, 39),
        (Size(224, 224), 2873, 39),
        (Size(448, 448), 2873, 39),
        (Size(1280, 720), 2197, 30),
        (Size(1170, 2532), 1521, 23),
        (Size(3840, 2160), 2197, 30),
        (Size(3024, 4032), 2197, 31),
        (Size(3000, 100), 845, 12),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = IDEFICS3.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_an_image_costs_what_its_aspect_says() -> None:
    for size in (Size(4, 3), Size(640, 480), Size(8000, 6000)):
        assert IDEFICS3.image_tokens(size, CHECKPOINT).tokens == 2197
    target = IDEFICS3.plan(Size(1, 1), CHECKPOINT, cap_tokens=1000)
    assert (target.reached, target.tokens.tokens) == (False, 2873)
    assert "longest_edge" in IDEFICS3.knob


def test_the_small_model_has_larger_tiles_of_fewer_tokens() -> None:
    small = shipped_catalog().find("HuggingFaceTB/SmolVLM2-500M-Video-Instruct").checkpoint
    price = SMOLVLM.image_tokens(Size(1280, 720), small)
    assert (price.tokens, price.struct_tokens) == (832, 30)
    middle = shipped_catalog().find("HuggingFaceTB/SmolVLM2-2.2B-Instruct").checkpoint
    assert SMOLVLM.image_tokens(Size(1280, 720), middle).tokens == 1053


def test_one_tile_has_no_overview() -> None:
    """The engine's knob at one tile: three tokens stand around its only view."""
    tiles = shape_of(CHECKPOINT)
    one = replace(CHECKPOINT, tiles=replace(tiles, edge=364))
    price = IDEFICS3.image_tokens(Size(500, 500), one)
    assert (price.tokens, price.struct_tokens, price.vit_patches) == (169, 3, 676)


def test_an_edge_beyond_4096_is_cut_back() -> None:
    wide = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), edge=5096))
    assert IDEFICS3.engine_size(Size(5096, 5096), wide) == Size(4368, 4368)
    assert IDEFICS3.engine_size(Size(100, 5096), wide) == Size(364, 4368)
    assert IDEFICS3.engine_size(Size(5096, 100), wide) == Size(4368, 364)
