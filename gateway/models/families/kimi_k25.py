"""Kimi-K2.5 and K2.6: patches of 14, two by two to a token; shrunk to two limits, then padded right and below.

Checked against transformers 5.19.0 (`Kimi_K25Processor`) and vLLM 0.32.0 (`KimiK25FusedVisionProcessor`), which agree.
At most 16,384 whole patches and 512 patches a side; nothing is refused. The template writes `<|media_begin|>`, "image",
`<|media_content|>` and `<|media_end|>` around the image.
"""

from __future__ import annotations

from math import sqrt
from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.covering import CoveringFamily
from gateway.models.geometry import check_sides
from gateway.types import Size


class _KimiK25:
    """`max_pixels` is the limit of patches as an area, `longest_side` that of a side."""

    stretches = False

    def content(self, size: Size, checkpoint: Checkpoint) -> Size:
        width, height, patch, longest = size.width, size.height, checkpoint.patch, checkpoint.longest_side
        if width < 1 or height < 1:
            check_sides(size)
        patches = max(1.0, width // patch) * max(1.0, height // patch)
        scale = min(sqrt((checkpoint.max_pixels // (patch * patch)) / patches), longest / height, longest / width)
        if scale >= 1:
            return size
        return Size(min(max(1, int(width * scale)), longest), min(max(1, int(height * scale)), longest))

    def most_cells(self, checkpoint: Checkpoint) -> int:
        return checkpoint.max_pixels // checkpoint.factor**2

    def longest_cells(self, checkpoint: Checkpoint) -> int:
        return checkpoint.longest_side // checkpoint.factor


KIMI_K25: Final = CoveringFamily(
    name="kimi_k25", knob="none: one cell is the least of any image", wrapper_tokens=4, rule=_KimiK25()
)
