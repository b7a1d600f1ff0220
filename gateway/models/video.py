"""Videos in the Qwen families: which frames are taken, what they become, and how far the position advances.

Decided here: the processors' own arithmetic for a clip of known length. Not decided here: what an engine does before
its processor sees the clip (vLLM's loaders take 32 frames unless told otherwise, ``--media-io-kwargs``), so a count is
exact only where the frame rate or the number of frames is the one given here. Of a few clips (17 frames at 2.4 a
second) the processor of ``qwen2_vl`` asks, by a division's rounding, for one frame beyond the end, and fails; they are
priced without it.

Source: transformers 5.19.0, the video processors of ``qwen2_vl`` (a budget per *frame*) and ``qwen3_vl`` (one budget
over all frames). The position of Qwen2.5-VL follows ``get_rope_index`` of the same version. What stands between the
patches of Qwen3-VL is as in vLLM 0.32.0 (``qwen3_vl.py``, ``get_video_repl``): ``<1.5 seconds>``, which Qwen's
tokenizers cut into its characters and one token for the word, then the two vision markers. The chat template's own two
markers stand around every video.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, sqrt
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.geometry import check_ratio, check_sides, smart_resize
from gateway.types import Size

# Frames that one temporal patch spans.
TEMPORAL_PATCH: Final = 2


@dataclass(frozen=True, slots=True)
class VideoRules:
    """How a processor samples and sizes frames. Areas are pixels: of a frame, or of all frames (``over_all_frames``).

    ``positions_per_s`` is what one second of a clip adds to the temporal position (0: one per temporal patch);
    ``separate_patches`` tells that each temporal patch stands between its own timestamp and vision tokens.
    """

    frames_per_s: float
    min_frames: int
    max_frames: int
    min_pixels: int
    max_pixels: int
    over_all_frames: bool
    positions_per_s: float = 0.0
    separate_patches: bool = False


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip as it is stored: its frames' upright size, how many there are, and how many a second."""

    size: Size
    frames: int
    frames_per_s: float


@dataclass(frozen=True, slots=True)
class VideoTokens:
    """The price of one clip. ``grid`` is (temporal, rows, columns) in patches; ``tokens`` hold its embeddings.

    ``struct_tokens`` are timestamps and markers between the patches (vLLM counts them in ``multimodal_tokens.video``),
    ``wrapper_tokens`` stand around the video.
    """

    tokens: int
    sampled_frames: int
    grid: tuple[int, int, int]
    position_advance: int
    struct_tokens: int = 0
    wrapper_tokens: int = 2

    @property
    def reported_tokens(self) -> int:
        """What vLLM says in ``multimodal_tokens.video``."""
        return self.tokens + self.struct_tokens

    @property
    def prompt_tokens(self) -> int:
        return self.tokens + self.struct_tokens + self.wrapper_tokens

    @property
    def vit_patches(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def tokens_per_patch(self) -> int:
        """Tokens of one temporal patch."""
        return self.tokens // self.grid[0]


QWEN2_VL: Final = VideoRules(2.0, 4, 768, 128 * 28 * 28, 768 * 28 * 28, over_all_frames=False)
QWEN2_5_VL: Final = replace(QWEN2_VL, positions_per_s=2.0)
QWEN3_VL: Final = VideoRules(2.0, 4, 768, 4096, 25_165_824, over_all_frames=True, separate_patches=True)

# They share the image rule of a family whose video rule they do not: sound is woven in, or no video is taken.
_OTHER_LOADERS: Final = ("omni", "dots.ocr")


def rules_of(checkpoint: Checkpoint) -> VideoRules | None:
    """The rules a checkpoint is shipped with; ``None`` where clips are not counted."""
    if any(word in checkpoint.name.lower() for word in _OTHER_LOADERS):
        return None
    if checkpoint.family == "qwen2_vl":  # one image rule, but only 2.5 tells time
        return QWEN2_5_VL if "2.5" in checkpoint.name else QWEN2_VL
    return QWEN3_VL if checkpoint.family == "qwen3_vl" else None


def sampled_frames(clip: Clip, rules: VideoRules) -> int:
    """How many frames the processor takes. Raises `ValueError` for a clip without frames or time."""
    if clip.frames < 1 or not 0 < clip.frames_per_s < float("inf"):
        raise ValueError(f"not a clip: {clip.frames} frames at {clip.frames_per_s} a second")
    wanted = clip.frames / clip.frames_per_s * rules.frames_per_s
    if rules.over_all_frames:
        return min(max(int(wanted), rules.min_frames), rules.max_frames, clip.frames)
    most = floor(min(rules.max_frames, clip.frames) / TEMPORAL_PATCH) * TEMPORAL_PATCH
    return floor(min(max(wanted, rules.min_frames), most, clip.frames) / TEMPORAL_PATCH) * TEMPORAL_PATCH or clip.frames


def frame_indices(clip: Clip, count: int, rules: VideoRules) -> tuple[int, ...]:
    """Which ``count`` frames of a clip are taken: spread over all of it, both ends included where the family does."""
    if rules.over_all_frames:
        step = (clip.frames - 1) / (count - 1) if count > 1 else 0.0
        return tuple(round(index * step) for index in range(count))
    return tuple(int(index * clip.frames / count) for index in range(count))


def video_tokens(clip: Clip, checkpoint: Checkpoint, rules: VideoRules) -> VideoTokens:
    """The price of a clip. Raises `AspectRatioExceeded` and `Undecodable` as images do, `ValueError` for no clip."""
    count = sampled_frames(clip, rules)
    times_s = [index / clip.frames_per_s for index in frame_indices(clip, count, rules)]
    return _price(clip.size, times_s, count / clip_seconds(clip), checkpoint, rules)


def frames_tokens(
    size: Size, count: int, frames_per_s: float, checkpoint: Checkpoint, rules: VideoRules
) -> VideoTokens:
    """The price of ``count`` frames sent as such, which the engine takes to be ``frames_per_s`` apart.

    Raises `AspectRatioExceeded`, `Undecodable`.
    """
    return _price(size, [index / frames_per_s for index in range(count)], frames_per_s, checkpoint, rules)


def processed_size(size: Size, count: int, checkpoint: Checkpoint, rules: VideoRules) -> Size:
    """What the processor makes of each of ``count`` frames. Raises `AspectRatioExceeded`, `Undecodable`."""
    check_sides(size)
    if rules.over_all_frames:
        return _shared(size, count, checkpoint, rules)
    return _own(size, checkpoint, rules)


def _price(
    size: Size, times_s: Sequence[float], sampled_per_s: float, checkpoint: Checkpoint, rules: VideoRules
) -> VideoTokens:
    frames = len(times_s)
    temporal = ceil(frames / TEMPORAL_PATCH)
    sized = processed_size(size, frames, checkpoint, rules)
    rows, columns = sized.height // checkpoint.factor, sized.width // checkpoint.factor
    advance = _advance(temporal, rows, columns, sampled_per_s, rules)
    grid = (temporal, rows * checkpoint.merge, columns * checkpoint.merge)
    struct = _struct_tokens(times_s) if rules.separate_patches else 0
    return VideoTokens(temporal * rows * columns, frames, grid, advance, struct)


def _struct_tokens(times_s: Sequence[float]) -> int:
    """Each temporal patch's timestamp (the mean of its frames, the last one repeated), and its two markers."""
    even = [*times_s, times_s[-1]] if len(times_s) % TEMPORAL_PATCH else times_s
    stamps = [f"{(even[index] + even[index + 1]) / 2:.1f}" for index in range(0, len(even), TEMPORAL_PATCH)]
    return sum(len(stamp) + 3 + 2 for stamp in stamps)


def clip_seconds(clip: Clip) -> float:
    """How long a clip lasts."""
    return clip.frames / clip.frames_per_s


def _own(size: Size, checkpoint: Checkpoint, rules: VideoRules) -> Size:
    """Each frame within its own budget, by the rule for images."""
    return smart_resize(
        size,
        factor=checkpoint.factor,
        min_pixels=rules.min_pixels,
        max_pixels=rules.max_pixels,
        max_ratio=checkpoint.max_ratio,
    )


def _shared(size: Size, frames: int, checkpoint: Checkpoint, rules: VideoRules) -> Size:
    """All frames within one budget; an odd number of frames is rounded half to even pairs, as the processor does.

    A side below one unit is first scaled up to it, and the ratio is judged after that.
    """
    height, width, factor = size.height, size.width, checkpoint.factor
    if min(height, width) < factor:
        scale = max(factor / height, factor / width)
        height, width = int(height * scale), int(width * scale)
    check_ratio(Size(width, height), checkpoint.max_ratio)
    rows, columns = round(height / factor), round(width / factor)
    paired = round(frames / TEMPORAL_PATCH) * TEMPORAL_PATCH
    volume = paired * rows * columns * factor * factor
    if volume > rules.max_pixels:
        shrink = sqrt(frames * height * width / rules.max_pixels)
        rows = max(1, floor(height / shrink / factor))
        columns = max(1, floor(width / shrink / factor))
    elif volume < rules.min_pixels:
        grow = sqrt(rules.min_pixels / (frames * height * width))
        rows, columns = ceil(height * grow / factor), ceil(width * grow / factor)
    return Size(columns * factor, rows * factor)


def _advance(temporal: int, rows: int, columns: int, sampled_per_s: float, rules: VideoRules) -> int:
    """By the longest side of the grid, the temporal one in the processor's units; separate patches add up."""
    if rules.separate_patches:
        return temporal * max(rows, columns)
    step = 1.0 if not rules.positions_per_s else rules.positions_per_s * TEMPORAL_PATCH / sampled_per_s
    return max(int((temporal - 1) * step) + 1, rows, columns)
