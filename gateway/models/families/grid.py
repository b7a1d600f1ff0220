"""Families that resize an image to a grid of tokens: one planner, a few rules, many numbers.

Decided here: counting and planning on a grid whose cells are tokens, and Qwen's rule, `geometry.smart_resize`. Not
decided here: which models count so and how their rules differ (the family files), and with which numbers (the
checkpoint). A rule says what the processor takes an image for before it resizes (`seen`, which raises for shapes that
it refuses) and what it makes of that (`resized`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import (
    check_ratio,
    check_sides,
    is_settled,
    keeps_aspect,
    normalised_size,
    smallest_settled,
    smart_resize,
    trimmed,
)
from gateway.types import ImageTokens, Size


class GridRule(Protocol):
    """One processor's way to a grid. Both sides of what it makes are multiples of the checkpoint's factor.

    `serves_any`: it takes care itself of sides below one cell, so that such an image may go as it is.
    """

    serves_any: bool

    def seen(self, size: Size, checkpoint: Checkpoint) -> Size:
        """What the processor takes the raster for. Raises `Undecodable` without area, `AspectRatioExceeded`."""
        ...

    def resized(self, seen: Size, checkpoint: Checkpoint) -> Size:
        """What it makes of that under the checkpoint's limits."""
        ...

    def shrinks(self, seen: Size, checkpoint: Checkpoint) -> bool:
        """Whether the engine's own cap binds, by the processor's own test."""
        ...


class SmartResize:
    """Qwen's rule: what is beyond the aspect limit is refused, everything else is rounded to the grid."""

    serves_any = False

    def seen(self, size: Size, checkpoint: Checkpoint) -> Size:
        width, height = size.width, size.height
        if width < 1 or height < 1:
            check_sides(size)
        if max(height, width) / min(height, width) > checkpoint.max_ratio:
            check_ratio(size, checkpoint.max_ratio)
        return size

    def resized(self, seen: Size, checkpoint: Checkpoint) -> Size:
        return smart_resize(
            seen,
            factor=checkpoint.patch * checkpoint.merge,
            min_pixels=checkpoint.min_pixels,
            max_pixels=checkpoint.max_pixels,
            max_ratio=inf,
        )

    def shrinks(self, seen: Size, checkpoint: Checkpoint) -> bool:
        """The rounded area counts, not the raw one."""
        factor = checkpoint.factor
        return round(seen.width / factor) * round(seen.height / factor) * factor * factor > checkpoint.max_pixels


SMART_RESIZE = SmartResize()


@dataclass(frozen=True, slots=True)
class GridFamily:
    """A family whose tokens are the cells of the resized image.

    `wrapper_tokens` stand around each image in the chat template, `struct_tokens` in the processor's expansion;
    `edge_tokens` do too, but on image positions. Without `mrope` every embedding advances the position by one.
    """

    name: str
    knob: str
    wrapper_tokens: int
    rule: GridRule = SMART_RESIZE
    struct_tokens: int = 0
    edge_tokens: int = 0
    mrope: bool = True

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:
        """Price of one raster; the images of a request do not change each other's."""
        return self._price(self.engine_size(size, checkpoint), checkpoint)

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        return tuple(self.image_tokens(size, checkpoint) for size in sizes)

    def tokens_among(
        self,
        size: Size,
        image_count: int,  # noqa: ARG002  # the contract's
        checkpoint: Checkpoint,
    ) -> int | None:
        return self.image_tokens(size, checkpoint).tokens

    def engine_size(self, size: Size, checkpoint: Checkpoint) -> Size:
        return self.rule.resized(self.rule.seen(size, checkpoint), checkpoint)

    def normalised(self, size: Size, checkpoint: Checkpoint) -> Size:
        """Sides below one grid unit crash engines, so such an image becomes what the processor would make of it.

        That keeps its count; enlarging it at its own aspect would not (10x2000 is 29 tokens, 28x5600 is 200). Where
        the limits lie so close together that the engine would resize that again, the aspect is kept instead.
        """
        grown = self.engine_size(size, checkpoint)
        if self.rule.serves_any or min(size.width, size.height) >= checkpoint.factor:
            return size
        return grown if is_settled(grown, checkpoint) else normalised_size(size, checkpoint)

    def plan(
        self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None = None, cap_tokens: int | None = None
    ) -> Target:
        """The processor's own shrinking under the smallest of the caps, unless the engine would resize that again.

        It would near the family's floor and for strips of fewer cells than their aspect ratio; there the nearest grid
        that stays as it is takes its place. Images are never enlarged to meet a cap.
        """
        cap = _policy_cap(checkpoint.factor, cap_pixels, cap_tokens, self.edge_tokens)
        start = self.normalised(size, checkpoint)
        whole = self.engine_size(start, checkpoint)
        free = self._plan_for_engine(size, start, whole, checkpoint)
        if cap is None or (free.size.pixels <= cap and whole.pixels <= cap):
            return free
        if start.pixels < checkpoint.min_pixels:
            # The engine enlarges this image; every size that it leaves alone is larger, and we enlarge nothing.
            return Target(start, self._price(whole, checkpoint), reached=False, reason=TargetReason.CAP_UNREACHABLE)
        seen = self.rule.seen(size, checkpoint)
        fitted = self._fitted(seen, min(cap, checkpoint.max_pixels), checkpoint)
        if fitted is None or fitted.pixels > whole.pixels:
            return self._nearest(seen, start, whole, cap, checkpoint)
        reason = TargetReason.ENGINE_CAP if fitted == whole else TargetReason.POLICY_CAP
        return Target(fitted, self._price(fitted, checkpoint), reached=True, reason=reason)

    def _plan_for_engine(self, size: Size, start: Size, whole: Size, checkpoint: Checkpoint) -> Target:
        """No policy cap binds: shrink only what the engine would shrink, and only where that leaves the same count."""
        tokens = self._price(whole, checkpoint)
        if not self.rule.shrinks(self.rule.seen(start, checkpoint), checkpoint):
            reason = TargetReason.CONFORMING if start == size else TargetReason.TOO_SMALL
            return Target(start, tokens, reached=True, reason=reason)
        if whole.pixels >= start.pixels or not is_settled(whole, checkpoint):
            return Target(start, tokens, reached=True, reason=TargetReason.ENGINE_RESIZES)
        return Target(whole, tokens, reached=True, reason=TargetReason.ENGINE_CAP)

    def _fitted(self, seen: Size, cap: int, checkpoint: Checkpoint) -> Size | None:
        """What the processor would make under this cap, trimmed; `None` where the engine would resize that again."""
        factor, least = checkpoint.factor, checkpoint.min_pixels
        free = smart_resize(seen, factor=factor, min_pixels=least, max_pixels=cap, max_ratio=inf)
        fitted = trimmed(free, cap, checkpoint)
        if fitted.pixels > cap or not is_settled(fitted, checkpoint):
            return None
        if not keeps_aspect(seen, fitted, factor) or _below_floor(fitted, seen, checkpoint):
            return None
        return fitted

    def _nearest(self, seen: Size, start: Size, whole: Size, cap: int, checkpoint: Checkpoint) -> Target:
        """Nothing of the processor's own fits: the family's floor at this aspect, if that is any better."""
        floor = smallest_settled(seen, checkpoint)
        if floor.pixels >= whole.pixels:
            floor = smallest_settled(start, checkpoint)
        if floor.pixels >= whole.pixels or not is_settled(floor, checkpoint):
            return Target(start, self._price(whole, checkpoint), reached=False, reason=TargetReason.CAP_UNREACHABLE)
        reached = floor.pixels <= cap and keeps_aspect(seen, floor, checkpoint.factor)
        reason = TargetReason.POLICY_CAP if reached else TargetReason.CAP_UNREACHABLE
        return Target(floor, self._price(floor, checkpoint), reached, reason)

    def _price(self, resized: Size, checkpoint: Checkpoint) -> ImageTokens:
        """Price of a raster that the processor has resized. M-RoPE advances by the longer side of the token grid."""
        factor, merge = checkpoint.patch * checkpoint.merge, checkpoint.merge
        columns, rows = resized.width // factor, resized.height // factor
        cells = columns * rows
        tokens = cells + self.edge_tokens
        return ImageTokens(
            tokens,
            self.struct_tokens,
            self.wrapper_tokens,
            (1, rows * merge, columns * merge),
            max(rows, columns) if self.mrope else tokens,
            cells * merge * merge,
        )


def _policy_cap(factor: int, cap_pixels: int | None, cap_tokens: int | None, edge_tokens: int) -> int | None:
    """Both caps as one area in pixels; a token is a square of `factor`. No image has less than one pixel."""
    for name, cap in (("cap_pixels", cap_pixels), ("cap_tokens", cap_tokens)):
        if cap is not None and cap < 1:
            raise ValueError(f"{name} must be at least 1, not {cap}")
    token_area = None if cap_tokens is None else max(1, (cap_tokens - edge_tokens) * factor * factor)
    caps = [cap for cap in (cap_pixels, token_area) if cap is not None]
    return min(caps, default=None)


def _below_floor(fitted: Size, size: Size, checkpoint: Checkpoint) -> bool:
    """Whether `fitted`, though settled, is cheaper than the floor that a smaller cap would get.

    Refusing it keeps one promise: a smaller cap never costs more. The floor is within twice the minimum or one
    cell across, so that most plans need not look for it.
    """
    if min(fitted.width, fitted.height) > checkpoint.factor and fitted.pixels >= 2 * checkpoint.min_pixels:
        return False
    return fitted.pixels < smallest_settled(size, checkpoint).pixels
