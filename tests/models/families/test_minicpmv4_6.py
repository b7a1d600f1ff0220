from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.families.minicpmv4_6 import MINICPMV4_6
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("openbmb/MiniCPM-V-4_6").checkpoint


@pytest.mark.parametrize(
    ("size", "tokens", "struct_tokens"),
    [
        (Size(1, 1), 64, 5),
        (Size(224, 224), 64, 5),
        (Size(448, 448), 64, 5),
        (Size(1280, 720), 444, 18),
        (Size(1170, 2532), 572, 24),
        (Size(3840, 2160), 578, 22),
        (Size(3024, 4032), 630, 25),
        (Size(3000, 100), 268, 11),
    ],
)
def test_what_one_picture_costs(size: Size, tokens: int, struct_tokens: int) -> None:
    price = MINICPMV4_6.image_tokens(size, CHECKPOINT)
    assert (price.tokens, price.struct_tokens) == (tokens, struct_tokens)


def test_the_denser_mode_costs_four_times_as_much() -> None:
    dense = replace(CHECKPOINT, merge=2)
    assert MINICPMV4_6.image_tokens(Size(1280, 720), dense).tokens == 1776
    assert MINICPMV4_6.engine_size(Size(1280, 720), dense) == Size(616, 336)
