"""The contract of a family: how a model's processor turns an image into tokens, and the inverse.

Decided here: the questions every family answers, in the same units. Not decided here: any answer. The contract holds
for families that resize to a grid as well as for tile families, whose price may depend on the other images of the
request and whose floor may lie above every small cap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gateway.models.checkpoint import Checkpoint
from gateway.types import ImageTokens, Size


class TargetReason(StrEnum):
    """Why a target is what it is."""

    CONFORMING = "conforming"  # within every cap as it came
    TOO_SMALL = "too_small"  # within every cap, but a side had to grow to one grid unit
    ENGINE_CAP = "engine_cap"  # what the served model's own processor would make of it
    POLICY_CAP = "policy_cap"  # smaller than that, because the caller's cap says so
    ENGINE_RESIZES = "engine_resizes"  # over the engine's cap, but no smaller size would give the same count
    CAP_UNREACHABLE = "cap_unreachable"  # the family's floor at this aspect lies above the cap


@dataclass(frozen=True, slots=True)
class Target:
    """A size to deliver and its price. `reached` is false only for `CAP_UNREACHABLE`, where it is the nearest size."""

    size: Size
    tokens: ImageTokens
    reached: bool
    reason: TargetReason


class Family(Protocol):
    """How one kind of processor counts. All methods raise `AspectRatioExceeded` for shapes the processor refuses."""

    @property
    def name(self) -> str: ...

    @property
    def knob(self) -> str:
        """The engine's own setting that lowers the floor, for people: named where a cap is unreachable."""
        ...

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:
        """What the engine counts for a single raster of this size."""
        ...

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        """The same for all images of one request, in order: in some families they change each other's price."""
        ...

    def tokens_among(self, size: Size, image_count: int, checkpoint: Checkpoint) -> int | None:
        """Tokens of one of `image_count` images where only that count matters; `None` where the others' sizes do."""
        ...

    def engine_size(self, size: Size, checkpoint: Checkpoint) -> Size:
        """What the served model's own processor makes of this raster."""
        ...

    def normalised(self, size: Size, checkpoint: Checkpoint) -> Size:
        """The size to deliver before any cap: the raster's own unless a side is too small to be served."""
        ...

    def plan(self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None, cap_tokens: int | None) -> Target:
        """The size to deliver: normalised, and the largest within the checkpoint's and the caller's caps.

        Idempotent; tokens never grow when a cap shrinks; never above a cap unless `reached` is false. A caller's cap
        binds the delivered pixels and the pixels the engine then works on; the checkpoint's own cap only the latter.
        """
        ...
