from __future__ import annotations

import pytest

from gateway.models.catalog import shipped_catalog
from gateway.models.tiling import TileEngine

QWEN3 = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint


def test_the_factor_is_the_side_of_one_token() -> None:
    assert QWEN3.factor == 32


def test_other_limits_leave_everything_else() -> None:
    capped = QWEN3.with_(max_pixels=1280 * 1024)
    assert (capped.max_pixels, capped.min_pixels) == (1_310_720, 65_536)
    assert capped.with_(max_pixels=QWEN3.max_pixels) == QWEN3
    assert QWEN3.with_(min_pixels=4096).min_pixels == 4096
    assert QWEN3.with_() == QWEN3


def test_sglang_counts_tiles_otherwise_and_nothing_else() -> None:
    intern = shipped_catalog().find("OpenGVLab/InternVL2-8B").checkpoint
    tiles = intern.counted_by(TileEngine.SGLANG).tiles
    assert tiles is not None
    assert tiles.engine is TileEngine.SGLANG
    assert intern.counted_by(TileEngine.SGLANG).counted_by(TileEngine.PROCESSOR) == intern
    assert intern.counted_by(TileEngine.PROCESSOR) is intern
    assert QWEN3.counted_by(TileEngine.SGLANG) is QWEN3


def test_another_limit_of_tiles_leaves_everything_else() -> None:
    ocr = shipped_catalog().find("deepseek-ai/DeepSeek-OCR").checkpoint
    tiles = ocr.with_tiles(1).tiles
    assert tiles is not None
    assert (tiles.least, tiles.most, tiles.side) == (1, 1, 640)
    for checkpoint, most in ((ocr, 0), (QWEN3, 4)):
        with pytest.raises(ValueError, match="max_tiles"):
            checkpoint.with_tiles(most)


@pytest.mark.parametrize("limits", [{"max_pixels": 0}, {"min_pixels": -1}])
def test_a_limit_must_be_positive_and_is_named(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        QWEN3.with_(**limits)
