"""Families that cover an image with cells and never enlarge it: shrink to the engine's limits, then round up.

Decided here: counting and planning where a processor pads or stretches an image to whole cells. Not decided here: how
each processor shrinks (the family files) and its limits (the checkpoint).

All sizes of one aspect form a chain of grids, each covering the one below. A cap gets the largest grid of the chain
that is within it, found in closed form; one cell is below every aspect, so that a cap of one token is always reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Protocol

from gateway.models.checkpoint import Checkpoint
from gateway.models.family import Target, TargetReason
from gateway.models.geometry import check_caps
from gateway.types import ImageTokens, Size


class CoveringRule(Protocol):
    """One processor's shrinking. `stretches`: the image is resized to the grid; else it is padded."""

    stretches: bool

    def content(self, size: Size, checkpoint: Checkpoint) -> Size:
        """What is covered with cells; the raster itself unless the engine shrinks it.

        Raises `Undecodable` without area, `AspectRatioExceeded` for shapes that the processor refuses.
        """
        ...

    def most_cells(self, checkpoint: Checkpoint) -> int:
        """A grid of no more cells than that is not shrunk, if the next holds too."""
        ...

    def longest_cells(self, checkpoint: Checkpoint) -> int:
        """Nor one whose longer side has no more than that."""
        ...


@dataclass(frozen=True, slots=True)
class CoveringFamily:
    """A family whose tokens are the cells that cover the image. `row_marks`: a mark in the text after each row."""

    name: str
    knob: str
    wrapper_tokens: int
    rule: CoveringRule
    row_marks: bool = False

    def image_tokens(self, size: Size, checkpoint: Checkpoint) -> ImageTokens:
        """Price of one raster; the images of a request do not change each other's."""
        return self._price(self.rule.content(size, checkpoint), checkpoint)

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
        """The grid in pixels, what is padded included."""
        return _covered(self.rule.content(size, checkpoint), checkpoint.factor)

    def normalised(self, size: Size, checkpoint: Checkpoint) -> Size:
        """The raster itself: the processor covers even a single pixel with a whole cell."""
        self.rule.content(size, checkpoint)
        return size

    def plan(
        self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None = None, cap_tokens: int | None = None
    ) -> Target:
        """What the engine would make of it, if that is within the caps; else the largest grid that is."""
        check_caps(cap_pixels, cap_tokens)
        start, unit = self._for_engine(size, checkpoint), checkpoint.factor**2
        cells = start.tokens.tokens
        fits = cap_pixels is None or max(start.size.pixels, cells * unit) <= cap_pixels
        if fits and (cap_tokens is None or cells <= cap_tokens):
            return start
        caps = [cells if cap_pixels is None else cap_pixels // unit, cells if cap_tokens is None else cap_tokens]
        limit = min(cells, *caps)
        if cells <= 1:
            return Target(start.size, start.tokens, reached=False, reason=TargetReason.CAP_UNREACHABLE)
        target = self._fitted(size, max(1, min(limit, self.rule.most_cells(checkpoint))), checkpoint)
        reason = TargetReason.POLICY_CAP if limit else TargetReason.CAP_UNREACHABLE
        return Target(target, self.image_tokens(target, checkpoint), limit > 0, reason)

    def _for_engine(self, size: Size, checkpoint: Checkpoint) -> Target:
        """No policy cap: shrink what the engine would shrink, where it then leaves that as it is."""
        rule = self.rule
        content = rule.content(size, checkpoint)
        tokens = self._price(content, checkpoint)
        if content is size:
            return Target(size, tokens, reached=True, reason=TargetReason.CONFORMING)
        made = _covered(content, checkpoint.factor) if rule.stretches else content
        if made.pixels >= size.pixels or rule.content(made, checkpoint) is not made:
            return Target(size, tokens, reached=True, reason=TargetReason.ENGINE_RESIZES)
        return Target(made, tokens, reached=True, reason=TargetReason.ENGINE_CAP)

    def _fitted(self, size: Size, cells: int, checkpoint: Checkpoint) -> Size:
        """The largest size of this aspect that at most `cells` cells cover; what is padded keeps the aspect exactly."""
        factor = checkpoint.factor
        long, short = max(size.width, size.height), min(size.width, size.height)
        along, across = largest_grid(long, short, cells, self.rule.longest_cells(checkpoint))
        long_side, short_side = along * factor, across * factor
        if not self.rule.stretches and long_side * short <= short_side * long:
            short_side = max(1, long_side * short // long)
        elif not self.rule.stretches:
            long_side = short_side * long // short
        return Size(long_side, short_side) if size.width >= size.height else Size(short_side, long_side)

    def _price(self, content: Size, checkpoint: Checkpoint) -> ImageTokens:
        """Price of what is covered. Without M-RoPE every embedding advances the position by one."""
        factor, merge = checkpoint.patch * checkpoint.merge, checkpoint.merge
        columns, rows = -(-content.width // factor), -(-content.height // factor)
        tokens, marks = columns * rows, rows if self.row_marks else 0
        grid = (1, rows * merge, columns * merge)
        return ImageTokens(tokens, marks, self.wrapper_tokens, grid, tokens, tokens * merge * merge)


def _covered(content: Size, factor: int) -> Size:
    return Size(-(-content.width // factor) * factor, -(-content.height // factor) * factor)


def largest_grid(long: int, short: int, cells: int, longest: int) -> tuple[int, int]:
    """The last grid (along, across) of at most `cells` >= 1 cells in the chain of this aspect.

    The chain has two kinds of ends: a short side of exactly `across` cells, which `ceil(across * aspect)` cover along,
    and a long side of exactly `along`. With `across` the most rows that a full short side may have, one row more with
    as many columns as the cells allow is better, where that still is as long as the aspect asks for. In integers.
    """
    across = isqrt(cells * short // long)
    if across * -(-across * long // short) > cells:
        across -= 1
    along = -(-across * long // short)
    wider = cells // (across + 1)
    if wider * short > across * long:
        along, across = wider, across + 1
    if along > longest:
        along, across = longest, -(-longest * short // long)
    return along, across
