from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.families.phi3_5_v import PHI3_5_V
from gateway.models.families.tiled import shape_of
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("microsoft/Phi-3.5-vision-instruct").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 757, 0),
        (Size(224, 224), 757, 0),
        (Size(448, 448), 757, 0),
        (Size(1280, 720), 757, 0),
        (Size(1170, 2532), 469, 0),
        (Size(3840, 2160), 757, 0),
        (Size(3024, 4032), 757, 0),
        (Size(3000, 100), 745, 0),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = PHI3_5_V.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_more_crops_cost_more_whatever_the_size() -> None:
    sixteen = replace(CHECKPOINT, tiles=replace(shape_of(CHECKPOINT), most=16))
    sizes = (Size(1, 1), Size(1280, 720), Size(1170, 2532))
    assert [PHI3_5_V.image_tokens(size, sixteen).tokens for size in sizes] == [2509, 2353, 2377]


def test_a_strip_of_which_nothing_is_left_is_refused() -> None:
    assert PHI3_5_V.image_tokens(Size(1344, 1), CHECKPOINT).tokens == 745
    for size in (Size(1345, 1), Size(1, 1345)):
        with pytest.raises(AspectRatioExceeded, match=str(size)):
            PHI3_5_V.image_tokens(size, CHECKPOINT)
