"""LLaVA-1.5: one tile of 336, whatever the image, and 576 tokens.

The short side is scaled to 336 and the middle square is kept; 24 x 24 patches of 14, the class embedding is dropped.
Checked against transformers 5.19.0 (`LlavaProcessor`), which vLLM 0.32.0 and SGLang 0.5.23 run too.
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.tiled import Cut, TiledFamily, shape_of, unshrinkable
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:  # noqa: ARG001  # the contract's
    tiles = shape_of(checkpoint)
    patches = (tiles.side // checkpoint.patch) ** 2 + 1
    return Cut(tiles.tokens, 0, 1, 1, Size(tiles.side, tiles.side), patches)


def _fitted(size: Size, cut: Cut, checkpoint: Checkpoint) -> Size:  # noqa: ARG001  # the contract's
    """The image before the processor cuts its middle out: short side to the tile's."""
    side = shape_of(checkpoint).side
    if size.width <= size.height:
        return Size(side, int(side * size.height / size.width))
    return Size(int(side * size.width / size.height), side)


LLAVA_1_5: Final = TiledFamily("llava_1_5", "none: the model has one image size", _cut, _fitted, unshrinkable)
