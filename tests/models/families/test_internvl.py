from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.internvl import INTERNVL
from gateway.models.families.tiled import shape_of
from gateway.models.tiling import TileEngine
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("OpenGVLab/InternVL2-8B").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 2),
        (Size(224, 224), 256, 2),
        (Size(448, 448), 256, 2),
        (Size(1280, 720), 2304, 2),
        (Size(1170, 2532), 2304, 2),
        (Size(3840, 2160), 2304, 2),
        (Size(3024, 4032), 3328, 2),
        (Size(3000, 100), 3328, 2),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = INTERNVL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_sglang_takes_the_most_tiles_of_one_aspect() -> None:
    """A square image of any size is 9 tiles and an overview there, one tile of it in vLLM."""
    tiles = shape_of(CHECKPOINT)
    sglang = replace(CHECKPOINT, tiles=replace(tiles, engine=TileEngine.SGLANG, most=6))
    for size in (Size(1, 1), Size(224, 224), Size(633, 633)):
        assert INTERNVL.image_tokens(size, CHECKPOINT).tokens == 256
        assert INTERNVL.image_tokens(size, sglang).tokens == 2560
    assert INTERNVL.image_tokens(Size(634, 634), CHECKPOINT).tokens == 1280


def test_a_cap_gets_the_canvas_of_an_engine_with_fewer_tiles() -> None:
    target = INTERNVL.plan(Size(1280, 720), CHECKPOINT, cap_tokens=800)
    assert (target.size, target.tokens.tokens, target.reached) == (Size(896, 448), 768, True)
    small = INTERNVL.plan(Size(300, 169), CHECKPOINT, cap_tokens=256)
    assert (small.size, small.tokens.tokens) == (Size(225, 225), 256)


def test_a_cap_never_gets_a_picture_of_enlarged_pixels() -> None:
    """43x149 would cost 1,280 tokens, more of what the cap allows, and show next to nothing."""
    target = INTERNVL.plan(Size(1170, 3763), CHECKPOINT, cap_tokens=1956)
    assert (target.size, target.tokens.tokens) == (Size(448, 1344), 1024)


def test_under_sglang_a_square_has_no_cheaper_size() -> None:
    sglang = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), engine=TileEngine.SGLANG))
    target = INTERNVL.plan(Size(640, 640), sglang, cap_tokens=2000)
    assert (target.size, target.reached) == (Size(640, 640), False)
    assert INTERNVL.knob == "mm_processor_kwargs.max_dynamic_patch"
