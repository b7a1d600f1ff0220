"""Models we do not know: priced high, shrunk only where a policy says so, and flagged by the catalogue.

Decided here: what "conservative" means. The densest grid in use (28 x 28 pixels a token, sides rounded up) and a floor
of 256 tokens, which the fixed-size encoders charge for any picture; families that charge more for small images have
entries of their own. Nothing is assumed about an aspect limit or about the engine's own resizing: only the caller's
caps shrink an image, and the side it gets is a plain scaling to whole cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, sqrt
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import check_sides, normalised_size, trimmed
from gateway.types import ImageTokens, Size

FLOOR_TOKENS: Final = 256


@dataclass(frozen=True, slots=True)
class UnknownFamily:
    """An upper estimate. The position is assumed to advance by every token, as without M-RoPE."""

    name: str = "unknown"
    knob: str = "the served model's own image settings"

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:
        check_sides(size)
        columns, rows = -(-size.width // checkpoint.factor), -(-size.height // checkpoint.factor)
        tokens = max(columns * rows, FLOOR_TOKENS)
        patches = tokens * checkpoint.merge**2
        return ImageTokens(tokens, 0, 2, (1, rows * checkpoint.merge, columns * checkpoint.merge), tokens, patches)

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        return tuple(self.image_tokens(size, checkpoint) for size in sizes)

    def tokens_among(
        self,
        size: Size,
        image_count: int,  # noqa: ARG002  # the contract's
        checkpoint: Checkpoint,
    ) -> int | None:
        return self.image_tokens(size, checkpoint).tokens

    def engine_size(self, size: Size, checkpoint: Checkpoint) -> Size:  # noqa: ARG002  # the contract's
        """Not known, so the raster as it is."""
        check_sides(size)
        return size

    def normalised(self, size: Size, checkpoint: Checkpoint) -> Size:
        return normalised_size(size, checkpoint)

    def plan(
        self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None = None, cap_tokens: int | None = None
    ) -> Target:
        start = self.normalised(size, checkpoint)
        tokens = self.image_tokens(start, checkpoint)
        if (cap_pixels is None or start.pixels <= cap_pixels) and (cap_tokens is None or tokens.tokens <= cap_tokens):
            reason = TargetReason.CONFORMING if start == size else TargetReason.TOO_SMALL
            return Target(start, tokens, reached=True, reason=reason)
        caps = (cap_pixels, None if cap_tokens is None else max(cap_tokens, FLOOR_TOKENS) * checkpoint.factor**2)
        limit = min(cap for cap in caps if cap is not None)
        target = _shrunk(start, limit, checkpoint)
        if target.pixels >= start.pixels:
            return Target(start, tokens, reached=False, reason=TargetReason.CAP_UNREACHABLE)
        tokens = self.image_tokens(target, checkpoint)
        reached = target.pixels <= limit and (cap_tokens is None or tokens.tokens <= cap_tokens)
        reason = TargetReason.POLICY_CAP if reached else TargetReason.CAP_UNREACHABLE
        return Target(target, tokens, reached, reason)


def _shrunk(size: Size, limit_pixels: int, checkpoint: Checkpoint) -> Size:
    factor = checkpoint.factor
    scale = sqrt(limit_pixels / size.pixels)
    columns, rows = floor(size.width * scale / factor), floor(size.height * scale / factor)
    return trimmed(Size(max(1, columns) * factor, max(1, rows) * factor), limit_pixels, checkpoint)


UNKNOWN: Final = UnknownFamily()
