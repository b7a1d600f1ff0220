from __future__ import annotations

from dataclasses import replace

from gateway.models.catalog import shipped_catalog
from gateway.models.families.anyres import fitted, unpadded
from gateway.models.families.tiled import Cut
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("llava-hf/llava-v1.6-mistral-7b-hf").checkpoint


def test_padding_is_taken_off_in_pairs() -> None:
    """1280x720 on 48 x 48 cells is 48 x 27: of 21 rows of padding 20 go, one stays."""
    assert unpadded(Size(1280, 720), 48, 48) == (28, 48)
    assert unpadded(Size(720, 1280), 48, 48) == (48, 28)
    assert unpadded(Size(100, 100), 48, 48) == (48, 48)


def test_a_strip_may_lose_all_its_rows() -> None:
    assert unpadded(Size(90_000, 1), 24, 72) == (0, 72)


def test_the_free_side_is_rounded_up_within_the_canvas() -> None:
    cut = Cut(0, 0, 2, 2, Size(672, 672), 0)
    assert fitted(Size(1000, 501), cut, CHECKPOINT) == Size(672, 337)
    assert fitted(Size(501, 1000), cut, CHECKPOINT) == Size(337, 672)
    assert fitted(Size(90_000, 1), replace(cut, canvas=Size(1008, 336)), CHECKPOINT) == Size(1008, 1)
