from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.families.phi4_mm import PHI4_MM
from gateway.models.families.tiled import shape_of
from gateway.models.tiling import TileEngine
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("microsoft/Phi-4-multimodal-instruct").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 545, 0),
        (Size(224, 224), 545, 0),
        (Size(448, 448), 545, 0),
        (Size(1280, 720), 1596, 0),
        (Size(1170, 2532), 4689, 0),
        (Size(3840, 2160), 7392, 0),
        (Size(3024, 4032), 3409, 0),
        (Size(3000, 100), 725, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = PHI4_MM.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_a_strip_is_refused_where_the_processor_refuses_it() -> None:
    assert PHI4_MM.image_tokens(Size(3000, 100), CHECKPOINT).tokens == 725
    with pytest.raises(AspectRatioExceeded, match="200x1"):
        PHI4_MM.image_tokens(Size(200, 1), CHECKPOINT)
    counted = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), engine=TileEngine.VLLM_COUNT))
    assert PHI4_MM.image_tokens(Size(200, 1), counted).tokens > 273
