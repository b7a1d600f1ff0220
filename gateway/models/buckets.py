"""Buckets: a small set of sizes, for engines that keep one compiled encoder graph per resolution.

Decided here: which bucket an image that was planned to some size goes to. Not decided here: the buckets (policy).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Family, Target
from gateway.types import Size

# Beyond it a picture is visibly squeezed; such an image keeps the size it was planned to.
MAX_DISTORTION: Final = 1.25


def snapped(target: Target, family: Family, checkpoint: Checkpoint, buckets: Sequence[Size]) -> Target | None:
    """The target moved to the bucket that keeps most of it; ``None`` where none is near enough or small enough.

    A bucket never has more pixels or tokens than the target, so every cap still holds; a target that is a bucket stays.
    """
    best: tuple[float, int, int, int] | None = None
    chosen: Target | None = None
    for bucket in buckets:
        if bucket.pixels > target.size.pixels:
            continue
        across, down = bucket.width / target.size.width, bucket.height / target.size.height
        if max(across, down) > MAX_DISTORTION * min(across, down):
            continue
        tokens = family.image_tokens(bucket, checkpoint)
        rank = (min(across, down), bucket.pixels, bucket.width, bucket.height)
        if tokens.tokens <= target.tokens.tokens and (best is None or rank > best):
            best, chosen = rank, Target(bucket, tokens, target.reached, target.reason)
    return chosen
