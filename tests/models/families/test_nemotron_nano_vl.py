from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.nemotron_nano_vl import NEMOTRON_NANO_VL
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("nvidia/Llama-3.1-Nemotron-Nano-VL-8B-V1").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 2),
        (Size(224, 224), 256, 2),
        (Size(448, 448), 256, 2),
        (Size(1280, 720), 2304, 2),
        (Size(1170, 2532), 2304, 2),
        (Size(3840, 2160), 3328, 2),
        (Size(3024, 4032), 3328, 2),
        (Size(3000, 100), 3328, 2),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = NEMOTRON_NANO_VL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_a_cap_gets_the_canvas_of_an_engine_with_fewer_tiles() -> None:
    target = NEMOTRON_NANO_VL.plan(Size(1280, 720), CHECKPOINT, cap_tokens=800)
    assert target.reached
    assert (target.size, target.tokens.tokens) == (Size(1024, 512), 768)
