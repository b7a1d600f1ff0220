from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.nemotron_nano_v2_vl import NEMOTRON_NANO_V2_VL
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 256, 2),
        (Size(224, 224), 256, 2),
        (Size(448, 448), 256, 2),
        (Size(1280, 720), 768, 2),
        (Size(1170, 2532), 2304, 2),
        (Size(3840, 2160), 2304, 2),
        (Size(3024, 4032), 3328, 2),
        (Size(3000, 100), 3328, 2),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = NEMOTRON_NANO_V2_VL.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_a_photograph_is_shrunk_to_its_canvas() -> None:
    assert NEMOTRON_NANO_V2_VL.plan(Size(4032, 3024), CHECKPOINT).size == Size(2048, 1536)
