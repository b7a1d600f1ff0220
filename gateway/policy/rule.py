"""What every rule declares: its key, its kind of value, its default and, where it limits something, its checks.

A check returns the error it would raise, or None; it never raises, so that shadow mode can report what enforcement
would have refused. Messages state the actual number and the limit in plain digits and never a difference, which could
be negative or misread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.errors import GatewayError
from gateway.policy.effective import RuleValues
from gateway.policy.values import Kind
from gateway.types import (
    Call,
    ImageFormat,
    ImagePart,
    ImagePlan,
    LongString,
    MediumKind,
    Size,
    SourceFacts,
    TokenEstimate,
)
from gateway.types.per_request import per_request


@per_request(frozen=True, slots=True)
class MeasuredImage:
    """The numbers of one image that rules look at. ``name`` is its place in the body.

    ``raster`` is the stored size; ``cap_pixels`` the cap in force for it (policy's or engine's; None where unknown).
    ``target`` and ``tokens`` are what was planned for it (None where nothing was).
    """

    name: str
    format: ImageFormat
    byte_count: int
    raster: Size
    frames: int
    cap_pixels: int | None = None
    target: Size | None = None
    tokens: int | None = None

    @staticmethod
    def of(part: ImagePart, facts: SourceFacts, cap_pixels: int | None, plan: ImagePlan | None = None) -> MeasuredImage:
        probe = facts.probe
        return MeasuredImage(
            part.name,
            probe.format,
            facts.byte_count,
            probe.raster,
            probe.frames,
            cap_pixels,
            None if plan is None else plan.target,
            None if plan is None else plan.after.tokens,
        )

    @property
    def delivered(self) -> Size:
        """The size that goes to the engine."""
        return self.target or self.raster


@per_request(frozen=True, slots=True)
class MeasuredClip:
    """The numbers of one video or sound that rules look at; ``None`` where its header does not tell.

    ``frames`` are those that will reach the model, ``tokens`` the prompt positions they take.
    """

    name: str
    kind: MediumKind
    byte_count: int
    duration_s: float | None
    size: Size | None = None
    frames: int | None = None
    tokens: int | None = None


@per_request(frozen=True, slots=True)
class Measured:
    """What is known once every image was looked at and the tokens were estimated.

    ``kv_bytes`` are the fewest that the request can come to hold (None: not asked for, or the model's are not known).
    """

    images: Sequence[MeasuredImage]
    estimate: TokenEstimate
    clips: Sequence[MeasuredClip] = ()
    kv_bytes: int | None = None


def first_beyond(amounts: Sequence[int], limit: int) -> int:
    """The index of the image with which a sum goes above its limit; the last one where it does not."""
    total = 0
    for index, amount in enumerate(amounts):
        total += amount
        if total > limit:
            return index
    return len(amounts) - 1


DeclaredCheck = Callable[[RuleValues, Call], GatewayError | None]
MeasuredCheck = Callable[[RuleValues, Measured], GatewayError | None]


# A data URL's head, and what line breaks and escapes may add.
_HEAD_BYTES = 1024


def spelled_bytes(source: str | LongString) -> int:
    """How long a source is as it stands in the body."""
    return source.span.byte_count if isinstance(source, LongString) else len(source)


def is_spelled_longer(source: str | LongString | None, limit_bytes: int) -> bool:
    """Whether a source string is far too long for a file of ``limit_bytes``: 3 bytes in 4 characters, and a tenth."""
    return source is not None and 30 * (spelled_bytes(source) - _HEAD_BYTES) > 44 * limit_bytes


def fewest_bytes(source: str | LongString) -> int:
    """How many bytes the file behind a data URL has at least, before it is decoded; 0 for an address."""
    if isinstance(source, str) and source[:5].lower() != "data:":
        return 0
    return max(0, 30 * (spelled_bytes(source) - _HEAD_BYTES) // 44)


@dataclass(frozen=True, slots=True)
class Rule:
    """One key of ``rules``, ``tasks.*`` and ``models.*``.

    ``of_images``: its checks say nothing without an image; ``of_clips``: nothing without a video or a sound. ``join``
    makes one value of the inherited one and of the one written above it; without it the latter replaces.
    """

    key: str
    summary: str
    kind: Kind
    default: object
    declared: DeclaredCheck | None = None
    measured: MeasuredCheck | None = None
    of_images: bool = False
    of_clips: bool = False
    join: Callable[[Any, Any], object] | None = None  # Any: each rule's join knows its own two types
