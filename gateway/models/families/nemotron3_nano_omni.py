"""Nemotron-3-Nano-Omni: patches of 16, two by two to a token; all images of a request share what the context leaves.

Checked against vLLM 0.32.0 (`DynamicResolutionImageTiler`). Each image is rounded up to patches (a side of an odd
number of whole patches by one more), shrunk to its share of four patches per free token, raised to 1,024 patches, and
brought to even numbers of patches, up if that still fits. Where all together exceed the budget, each share is scaled
down and the images are made again. The budget is `image_budget_tokens`: what the context leaves after
the text and four tokens. Where nobody said, the whole context counts as free, and without a known context only the cap
of 13,312 patches binds. A mark starts and one ends each image. The position advances by every token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Final

from gateway.errors import AspectRatioExceeded
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.grid import GridFamily, SmartResize
from gateway.models.family import Target
from gateway.models.geometry import check_sides
from gateway.types import ImageTokens, Size

RESERVED_TOKENS: Final = 4
_ROUNDS: Final = 10  # the engine's own limit of attempts

# Columns and rows of one image in patches.
_Patches = tuple[int, int]


def _free_patches(checkpoint: Checkpoint, images: int) -> int:
    """What all images of a request may have together; each at least its minimum, even where that is too much."""
    merged, area = checkpoint.merge**2, checkpoint.patch**2
    least, most = checkpoint.min_pixels // area, checkpoint.max_pixels // area
    free_tokens = checkpoint.image_budget_tokens
    if free_tokens is None and checkpoint.context_tokens is not None:
        free_tokens = checkpoint.context_tokens - RESERVED_TOKENS
    return max(most * images if free_tokens is None else free_tokens * merged, least * images)


def _rounded(size: Size, patch: int) -> _Patches:
    return round(size.width / patch + 0.5), round(size.height / patch + 0.5)


def _made(size: Size, patch: int, least: int, most: int) -> _Patches:
    """One image under its own limit of patches. Raises `AspectRatioExceeded` where nothing of a side is left."""
    columns, rows = _rounded(size, patch)
    scale = min(sqrt(most / (rows * columns)), 1.0)
    rows, columns = floor(scale * rows), floor(scale * columns)
    if rows < 1 or columns < 1:
        raise AspectRatioExceeded(
            f"The request's images leave this one too few patches for its shape ({size}): nothing of a side is left."
        )
    if most > least and rows * columns < least:
        grow = sqrt(least / (rows * columns))
        rows, columns = ceil(grow * rows), ceil(grow * columns)
    if rows % 2:
        rows = rows + 1 if (rows + 1) * columns <= most else max(2, rows - 1)
    if columns % 2:
        columns = columns + 1 if rows * (columns + 1) <= most else max(2, columns - 1)
    return columns, rows


def _shared(sizes: Sequence[Size], checkpoint: Checkpoint) -> list[_Patches]:
    """The images of one request under one budget."""
    for size in sizes:
        check_sides(size)
    patch = checkpoint.patch
    least, most = checkpoint.min_pixels // patch**2, checkpoint.max_pixels // patch**2
    free = _free_patches(checkpoint, len(sizes))
    shares = [max(min(free, most), least)] * len(sizes)
    for _ in range(_ROUNDS):
        made = [_made(size, patch, least, share) for size, share in zip(sizes, shares, strict=True)]
        total = sum(columns * rows for columns, rows in made)
        if total <= free:
            return made
        scaled = [max(least, int(columns * rows * (free / total))) for columns, rows in made]
        shrinks = any(new < old for new, old in zip(scaled, shares, strict=True))
        shares = scaled if shrinks else [least] * len(sizes)
    raise AspectRatioExceeded("The request's images are too long and narrow for the model's budget of patches.")


class _Tiler(SmartResize):
    serves_any = True

    def seen(self, size: Size, checkpoint: Checkpoint) -> Size:  # noqa: ARG002  # the contract's
        check_sides(size)
        return size

    def resized(self, seen: Size, checkpoint: Checkpoint) -> Size:
        [(columns, rows)] = _shared((seen,), checkpoint)
        return Size(columns * checkpoint.patch, rows * checkpoint.patch)

    def shrinks(self, seen: Size, checkpoint: Checkpoint) -> bool:
        columns, rows = _rounded(seen, checkpoint.patch)
        return columns * rows * checkpoint.patch**2 > checkpoint.max_pixels


@dataclass(frozen=True, slots=True)
class NemotronOmniFamily(GridFamily):
    """One image is a grid like any other, under the cap that the context leaves."""

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        """Images that are too many for the context shrink each other."""
        patch = checkpoint.patch
        made = _shared(sizes, checkpoint)
        return tuple(self._price(Size(columns * patch, rows * patch), checkpoint) for columns, rows in made)

    def tokens_among(
        self,
        size: Size,  # noqa: ARG002  # the contract's, here and below
        image_count: int,  # noqa: ARG002
        checkpoint: Checkpoint,  # noqa: ARG002
    ) -> int | None:
        """They share the context by their sizes."""
        return None

    def plan(
        self, size: Size, checkpoint: Checkpoint, *, cap_pixels: int | None = None, cap_tokens: int | None = None
    ) -> Target:
        """As if the image were the request's only one."""
        free_pixels = _free_patches(checkpoint, 1) * checkpoint.patch**2
        effective = checkpoint.with_(max_pixels=min(checkpoint.max_pixels, free_pixels))
        return GridFamily.plan(self, size, effective, cap_pixels=cap_pixels, cap_tokens=cap_tokens)


NEMOTRON3_NANO_OMNI: Final = NemotronOmniFamily(
    name="nemotron3_nano_omni",
    knob="vision_config.min_num_patches (the checkpoint's own)",
    wrapper_tokens=0,
    rule=_Tiler(),
    struct_tokens=2,
    mrope=False,
)
