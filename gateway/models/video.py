"""Videos in the Qwen families: which frames are taken, what they become, and how far the position advances.

Decided here: the processors' own arithmetic for a clip of known length. Not decided here: what an engine does before
its processor sees the clip (vLLM's loaders take 32 frames unless told otherwise, ``--media-io-kwargs``), so a count is
exact only where the frame rate or the number of frames is the one given here.

Source: transformers 5.19.0, the video processors of ``qwen2_vl`` (a budget per *frame*) and ``qwen3_vl`` (one budget
over all frames). The position of Qwen2.5-VL follows ``get_rope_index`` of the same version.
"""

from __future__ import annotations

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
    """The price of one clip. ``grid`` is (temporal, rows, columns) in patches; timestamps' text is not counted."""

    tokens: int
    sampled_frames: int
    grid: tuple[int, int, int]
    position_advance: int

    @property
    def tokens_per_patch(self) -> int:
        """Tokens of one temporal patch."""
        return self.tokens // self.grid[0]


QWEN2_VL: Final = VideoRules(2.0, 4, 768, 128 * 28 * 28, 768 * 28 * 28, over_all_frames=False)
QWEN2_5_VL: Final = replace(QWEN2_VL, positions_per_s=2.0)
QWEN3_VL: Final = VideoRules(2.0, 4, 768, 4096, 25_165_824, over_all_frames=True, separate_patches=True)


def rules_of(checkpoint: Checkpoint) -> VideoRules | None:
    """The rules a checkpoint is shipped with; ``None`` where clips are not counted."""
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


def video_tokens(clip: Clip, checkpoint: Checkpoint, rules: VideoRules) -> VideoTokens:
    """The price of a clip. Raises `AspectRatioExceeded` and `Undecodable` as images do, `ValueError` for no clip."""
    frames = sampled_frames(clip, rules)
    check_sides(clip.size)
    check_ratio(clip.size, checkpoint.max_ratio)
    temporal = ceil(frames / TEMPORAL_PATCH)
    factor, merge = checkpoint.factor, checkpoint.merge
    sized = _shared(clip.size, frames, factor, rules) if rules.over_all_frames else _own(clip.size, checkpoint, rules)
    rows, columns = sized.height // factor, sized.width // factor
    advance = _advance(temporal, rows, columns, frames / clip_seconds(clip), rules)
    return VideoTokens(temporal * rows * columns, frames, (temporal, rows * merge, columns * merge), advance)


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


def _shared(size: Size, frames: int, factor: int, rules: VideoRules) -> Size:
    """All frames within one budget; an odd number of frames is rounded half to even pairs, as the processor does."""
    height, width = size.height, size.width
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
