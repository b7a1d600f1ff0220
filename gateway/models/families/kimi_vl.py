"""Kimi-VL: patches of 14, two by two to a token; shrunk to a number of patches, then padded right and below.

Checked against vLLM 0.32.0 (`KimiVLProcessingInfo.get_num_image_tokens`) and the checkpoint's own resizing. Only whole
patches count against `in_token_limit` (4,096, for Thinking-2506 16,384), and the padding comes after, so that an image
may cost more than a quarter of that. A side of 512 patches or more once padded is refused ("Exceed pos emb"): only
strips beyond some 64:1 get there. The template writes `<|media_start|>`, "image", `<|media_content|>` and
`<|media_end|>` around the image. There is no setting per request.
"""

from __future__ import annotations

from math import sqrt
from typing import Final

from gateway.errors import AspectRatioExceeded
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.covering import CoveringFamily
from gateway.models.geometry import check_sides
from gateway.types import Size


class _KimiVl:
    """`max_pixels` is the limit of patches as an area, `longest_side` the length of the table of positions."""

    stretches = False

    def content(self, size: Size, checkpoint: Checkpoint) -> Size:
        width, height, patch = size.width, size.height, checkpoint.patch
        if width < 1 or height < 1:
            check_sides(size)
        patches, limit = (width // patch) * (height // patch), max(1, checkpoint.max_pixels // (patch * patch))
        if patches > limit:
            scale = sqrt(limit / patches)
            width, height = int(width * scale), int(height * scale)
            size = Size(width, height)
        factor, long = patch * checkpoint.merge, max(width, height)
        if -(-long // factor) * factor >= checkpoint.longest_side:
            raise AspectRatioExceeded(
                f"Scaled to the model's limit of patches, the image is {size}; the model takes sides of fewer than "
                f"{checkpoint.longest_side} pixels."
            )
        return size

    def most_cells(self, checkpoint: Checkpoint) -> int:
        return checkpoint.max_pixels // checkpoint.factor**2

    def longest_cells(self, checkpoint: Checkpoint) -> int:
        return (checkpoint.longest_side - 1) // checkpoint.factor


KIMI_VL: Final = CoveringFamily(
    name="kimi_vl", knob="none: one cell is the least of any image", wrapper_tokens=4, rule=_KimiVl()
)
