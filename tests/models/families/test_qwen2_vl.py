from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.qwen2_vl import QWEN2_VL
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("Qwen/Qwen2.5-VL-7B-Instruct").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        (Size(1, 1), 4),
        (Size(224, 224), 64),
        (Size(448, 448), 256),
        (Size(1280, 720), 1196),
        (Size(1170, 2532), 3780),
        (Size(3840, 2160), 10_549),
        (Size(3024, 4032), 15_552),
        (Size(3000, 100), 428),
        (Size(10, 2000), 29),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int) -> None:
    price = QWEN2_VL.image_tokens(size, CHECKPOINT)
    assert price.tokens == tokens
    assert price.prompt_tokens == tokens + 2
    assert price.vit_patches == 4 * tokens


def test_images_of_a_request_do_not_change_each_others_price() -> None:
    sizes = [Size(224, 224), Size(1280, 720)]
    assert QWEN2_VL.request_tokens(sizes, CHECKPOINT) == tuple(QWEN2_VL.image_tokens(s, CHECKPOINT) for s in sizes)
