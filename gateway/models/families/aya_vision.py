"""Aya Vision: InternVL's rule with tiles of 364, an overview, and 169 tokens a tile.

A tile is 26 x 26 patches of 14, merged two by two. Around an image stand a start and an end token, and before each tile
and the overview a tag. Checked against transformers 5.19.0 (`AyaVisionProcessor`, the image processor is GOT-OCR2's),
which vLLM runs through its Transformers backend.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.internvl import canvases, cut_nearest
from gateway.models.families.tiled import Cut, TiledFamily, shape_of, stretched
from gateway.types import Size


def _cut(size: Size, checkpoint: Checkpoint) -> Cut:
    cut = cut_nearest(size, checkpoint)
    return replace(cut, struct_tokens=2 + cut.tokens // shape_of(checkpoint).tokens)


AYA_VISION: Final = TiledFamily("aya_vision", "mm_processor_kwargs.max_patches", _cut, stretched, canvases)
