"""Nemotron-Nano-12B-v2-VL: InternVL's rule with tiles of 512, an overview, and 256 tokens a tile.

Checked against `dynamic_preprocess` of vLLM 0.32.0 (`nano_nemotron_vl`), which calls InternVL's own target function.
"""

from __future__ import annotations

from typing import Final

from gateway.models.families.internvl import canvases, cut_nearest
from gateway.models.families.tiled import TiledFamily, stretched

NEMOTRON_NANO_V2_VL: Final = TiledFamily(
    "nemotron_nano_v2_vl", "mm_processor_kwargs.max_num_tiles", cut_nearest, stretched, canvases
)
