"""Families that stretch every image to one square: PaliGemma and Gemma 3n. A price that nothing changes.

Decided here: that a checkpoint's `tiles` are that square and its tokens. Checked against transformers 5.19.0
(`PaliGemmaProcessor`, `Gemma3nProcessor`). PaliGemma: 224, 448 or 896 pixels and a token per 14 x 14, without marks.
Gemma 3n: 768 pixels, 256 tokens, between two runs of newlines and two marks; its tower is convolutional, so that the
patches are those of the 16 x 16 grid. A larger image is delivered as the square, which is what the processor makes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of, stretched, unshrinkable
from gateway.types import Size


def _unmarked(size: Size, checkpoint: Checkpoint) -> Cut:  # noqa: ARG001  # the contract's
    shape = shape_of(checkpoint)
    patches = (shape.side // checkpoint.patch) ** 2
    return Cut(shape.tokens, 0, 1, 1, Size(shape.side, shape.side), patches)


def _marked(size: Size, checkpoint: Checkpoint) -> Cut:
    return replace(_unmarked(size, checkpoint), struct_tokens=4)


PALIGEMMA: Final = TiledFamily(
    name="paligemma",
    knob="none: the checkpoint's own square",
    cutter=_unmarked,
    fitter=stretched,
    shrinker=unshrinkable,
)
GEMMA3N: Final = TiledFamily(
    name="gemma3n",
    knob="none: the checkpoint's own square",
    cutter=_marked,
    fitter=stretched,
    shrinker=unshrinkable,
)
