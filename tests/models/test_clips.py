"""Frames for a backend: their number and size against what vLLM counted, and caps that hold whatever the clip."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.catalog import shipped_catalog
from gateway.models.clips import FrameCaps, FrameServing, sample
from gateway.models.video import QWEN2_5_VL, QWEN3_VL, Clip, frames_tokens, processed_size, video_tokens
from gateway.types import Size

CATALOG = shipped_catalog()
QWEN25 = CATALOG.find("Qwen/Qwen2.5-VL-7B-Instruct").checkpoint
QWEN3 = CATALOG.find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
MODELS = ((QWEN25, QWEN2_5_VL), (QWEN3, QWEN3_VL))

# (frames, width, height) -> ``multimodal_tokens.video`` that vLLM 0.32.0 reported for Qwen3-VL and Qwen2.5-VL, asked
# with ``data:video/jpeg;base64,`` and ``--media-io-kwargs '{"video": {"num_frames": -1}}'``.
REPORTED = {
    (2, 64, 64): (12, 144), (4, 320, 240): (176, 280), (5, 320, 240): (264, 420), (6, 448, 448): (612, 768),
    (16, 320, 180): (547, 1152), (24, 160, 120): (343, 1680), (32, 128, 96): (331, 2240), (40, 64, 64): (255, 2880),
    (7, 1170, 300): (1364, 1848), (3, 20, 20): (18, 288), (4, 30, 900): (76, 372), (9, 640, 360): (1140, 1495),
}  # fmt: skip


@pytest.mark.parametrize(("frames", "counts"), REPORTED.items())
def test_frames_cost_what_vllm_counted(frames: tuple[int, int, int], counts: tuple[int, int]) -> None:
    count, width, height = frames
    for (checkpoint, rules), reported in zip(MODELS, reversed(counts), strict=True):
        price = frames_tokens(Size(width, height), count, 1.0, checkpoint, rules)
        assert price.reported_tokens == reported
        assert price.prompt_tokens == reported + 2


def test_a_clip_is_sampled_as_its_family_does() -> None:
    clip = Clip(Size(1280, 720), 240, 24.0)
    found = sample(clip, QWEN3, QWEN3_VL, FrameServing(frames=768), FrameCaps())
    assert len(found.indices) == 20
    assert (found.indices[0], found.indices[-1]) == (0, 239)
    assert found.target == Size(1280, 704)
    assert found.price.tokens == video_tokens(clip, QWEN3, QWEN3_VL).tokens == 8800
    assert len(sample(clip, QWEN3, QWEN3_VL, FrameServing(), FrameCaps(frames=9)).indices) == 8
    assert len(sample(replace(clip, frames=24000), QWEN3, QWEN3_VL, FrameServing(), FrameCaps()).indices) == 32


def test_a_single_frame_is_shown_twice() -> None:
    found = sample(Clip(Size(64, 64), 1, 10.0), QWEN3, QWEN3_VL, FrameServing(), FrameCaps())
    assert found.indices == (0, 0)


clips = st.builds(
    Clip,
    st.builds(Size, st.integers(16, 3000), st.integers(16, 3000)),
    st.integers(1, 20_000),
    st.floats(1, 120, allow_nan=False),
)


@given(clips, st.sampled_from(MODELS), st.integers(2, 768), st.none() | st.integers(400, 20_000))
def test_caps_hold_and_the_processor_keeps_the_size(
    clip: Clip, model: tuple[object, object], most: int, tokens: int | None
) -> None:
    checkpoint, rules = model if model == MODELS[1] else MODELS[0]
    found = sample(clip, checkpoint, rules, FrameServing(frames=768), FrameCaps(most, 602_112, tokens))
    count = len(found.indices)
    assert count % 2 == 0
    assert 2 <= count <= max(2, most)
    assert all(first <= second for first, second in pairwise(found.indices))
    assert found.indices[0] >= 0
    assert found.indices[-1] < clip.frames
    assert found.target.pixels <= clip.size.pixels
    if tokens is not None and tokens >= 2000:
        assert found.price.prompt_tokens <= tokens
    if found.target != clip.size and tokens is None:
        assert processed_size(found.target, count, checkpoint, rules) == found.target
