"""From a clip to the frames a backend gets of it: how many, which, and how large.

Decided here: how a video is brought under caps. Not decided here: the processor's own arithmetic (``video``), the caps
(``policy``), and whether frames are sampled at all.

The number of frames is even: an odd one is padded by the processor, and in Qwen3-VL rounded to even pairs when the
budget is shared out, so only an even number makes the processor's own size one that it leaves alone. Frames are never
enlarged: where the processor would, it gets them as they are and does it itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.video import (
    TEMPORAL_PATCH,
    Clip,
    VideoRules,
    VideoTokens,
    frame_indices,
    frames_tokens,
    processed_size,
    sampled_frames,
)
from gateway.types import Size

# Below this many tokens for each pair of frames there is less to see in each than is lost by taking fewer of them.
_PAIR_TOKENS_FLOOR: Final = 64
_LEAST_FRAMES: Final = 4
# A pair's timestamp and markers, where a family writes them (`<999.5 seconds>`).
_PAIR_STRUCT_TOKENS: Final = 10


@dataclass(frozen=True, slots=True)
class FrameServing:
    """How an engine takes a video given as frames: at most ``frames`` (more are dropped), ``frames_per_s`` apart.

    vLLM 0.32.0 without ``--media-io-kwargs``: 32 frames (``VideoMediaIO.__init__``), one a second (``load_base64``).
    """

    frames: int = 32
    frames_per_s: float = 1.0


USUAL_SERVING: Final = FrameServing()


@dataclass(frozen=True, slots=True)
class FrameCaps:
    """What a policy allows one video: frames, pixels of a frame, prompt tokens; ``None`` = no cap of its own."""

    frames: int | None = None
    pixels: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """The frames to take, by their number in the clip, the size to deliver them in, and what they cost then."""

    indices: tuple[int, ...]
    target: Size
    price: VideoTokens


def sample(clip: Clip, checkpoint: Checkpoint, rules: VideoRules, serving: FrameServing, caps: FrameCaps) -> Sampling:
    """The family's own frames and size, within the caps as far as they can be met.

    Raises AspectRatioExceeded, Undecodable (no sides), ValueError (no clip).
    """
    most = min(serving.frames, serving.frames if caps.frames is None else caps.frames)
    count = _even(min(sampled_frames(clip, rules), most))
    if caps.tokens is not None:
        pairs = (caps.tokens - 2) // (_PAIR_TOKENS_FLOOR + _PAIR_STRUCT_TOKENS)
        count = min(count, max(_LEAST_FRAMES, pairs * TEMPORAL_PATCH))
    while True:
        found = _sized(clip, count, checkpoint, rules, serving, caps)
        is_met = caps.tokens is None or found.price.prompt_tokens <= caps.tokens
        if is_met or count == TEMPORAL_PATCH:
            return found
        count = _even(min(count - TEMPORAL_PATCH, count * (caps.tokens or 0) // found.price.prompt_tokens))


def _even(count: int) -> int:
    return max(TEMPORAL_PATCH, count // TEMPORAL_PATCH * TEMPORAL_PATCH)


def _sized(
    clip: Clip, count: int, checkpoint: Checkpoint, rules: VideoRules, serving: FrameServing, caps: FrameCaps
) -> Sampling:
    """``count`` frames in the size that the processor would make of them under the lower of its caps and ours."""
    unit = checkpoint.factor * checkpoint.factor
    frame_pixels = rules.max_pixels // count if rules.over_all_frames else rules.max_pixels
    if caps.pixels is not None:
        frame_pixels = min(frame_pixels, caps.pixels)
    if caps.tokens is not None:
        struct = _PAIR_STRUCT_TOKENS if rules.separate_patches else 0
        pair_tokens = (caps.tokens - 2) * TEMPORAL_PATCH // count - struct
        frame_pixels = min(frame_pixels, max(1, pair_tokens) * unit)
    most = max(1, frame_pixels) * (count if rules.over_all_frames else 1)
    capped = replace(rules, max_pixels=most, min_pixels=min(rules.min_pixels, most))
    target = processed_size(clip.size, count, checkpoint, capped)
    if target.pixels > clip.size.pixels:
        target = clip.size
    price = frames_tokens(target, count, serving.frames_per_s, checkpoint, rules)
    whole = replace(clip, frames=max(clip.frames, count))
    indices = tuple(min(index, clip.frames - 1) for index in frame_indices(whole, count, rules))
    return Sampling(indices, target, price)
