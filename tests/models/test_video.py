"""Clips: sampling, budgets and positions beyond what the oracle's table shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded, Undecodable
from gateway.models.catalog import shipped_catalog
from gateway.models.video import QWEN2_5_VL, QWEN2_VL, QWEN3_VL, Clip, clip_seconds, rules_of, sampled_frames
from gateway.models.video import video_tokens as price
from gateway.types import Size

CATALOG = shipped_catalog()
QWEN2 = CATALOG.find("Qwen/Qwen2-VL-7B-Instruct").checkpoint
QWEN25 = CATALOG.find("Qwen/Qwen2.5-VL-7B-Instruct").checkpoint
QWEN3 = CATALOG.find("Qwen/Qwen3-VL-8B-Instruct").checkpoint


def test_each_series_has_its_rules() -> None:
    assert rules_of(QWEN2) is QWEN2_VL
    assert rules_of(QWEN25) is QWEN2_5_VL
    assert rules_of(QWEN3) is QWEN3_VL
    assert rules_of(CATALOG.find("meta-llama/Llama-3.1-8B-Instruct").checkpoint) is None


def test_nine_frames_are_budgeted_as_eight_but_cost_five_pairs() -> None:
    clip = Clip(Size(1170, 2532), 149, 29.97)
    found = price(clip, QWEN3, QWEN3_VL)
    assert (found.sampled_frames, found.grid[0]) == (9, 5)


def test_a_frame_beyond_the_end_is_not_counted() -> None:
    """``torch.arange(0, 17, 17 / 14)`` has 15 elements, the last of them 17 (transformers 5.19.0, torch 2.13.0)."""
    assert sampled_frames(Clip(Size(64, 48), 17, 2.4), QWEN2_VL) == 14


def test_positions_count_time_in_the_models_own_units() -> None:
    minute = Clip(Size(640, 360), 1500, 25.0)
    plain, timed = price(minute, QWEN2, QWEN2_VL), price(minute, QWEN25, QWEN2_5_VL)
    assert plain.tokens == timed.tokens
    assert plain.position_advance == 60
    assert timed.position_advance == 119  # two positions a second, the last patch begins at 118
    separate = price(minute, QWEN3, QWEN3_VL)
    assert separate.position_advance == 60 * max(separate.grid[1:]) // 2


@given(
    st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 100_000), st.floats(0.5, 240, allow_nan=False),
    st.sampled_from(((QWEN2, QWEN2_VL), (QWEN3, QWEN3_VL))),
)  # fmt: skip
def test_any_clip_has_a_price_or_the_one_error(
    width: int, height: int, frames: int, rate: float, model: object
) -> None:
    assert isinstance(model, tuple)
    checkpoint, rules = model
    clip = Clip(Size(width, height), frames, rate)
    try:
        found = price(clip, checkpoint, rules)
    except AspectRatioExceeded:
        assert max(width, height) > 200 * min(width, height)
        return
    assert 1 <= found.sampled_frames <= min(frames, 768)
    assert found.tokens == found.grid[0] * found.tokens_per_patch
    assert found.tokens_per_patch >= 1


def test_what_is_no_clip_is_refused() -> None:
    clip = Clip(Size(640, 480), 100, 25.0)
    assert clip_seconds(clip) == 4.0
    for bad in (replace(clip, frames=0), replace(clip, frames_per_s=0.0), replace(clip, frames_per_s=float("nan"))):
        with pytest.raises(ValueError, match="not a clip"):
            sampled_frames(bad, QWEN3_VL)
    with pytest.raises(Undecodable):
        price(replace(clip, size=Size(0, 1)), QWEN3, QWEN3_VL)
