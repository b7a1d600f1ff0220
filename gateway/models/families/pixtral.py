"""Pixtral and Mistral 3: shrunk to a longest edge, then stretched to whole cells; a mark after each row of cells.

Checked against transformers 5.19.0 (`PixtralProcessor`) and mistral_common 1.13.1 (`ImageEncoder`). Both shrink by the
same ratio, but the first rounds down and fails on a side of which nothing is left, the second rounds half to even and
keeps one pixel; a few sizes differ by a row or a column. vLLM runs mistral_common when it loads Mistral's own format
and transformers otherwise; SGLang runs transformers. The last row's mark ends the image; the template adds nothing.
A longest edge L is a checkpoint's `max_pixels` of L x L. Pixtral-12B: patches of 16, not merged, L = 1,024.
Mistral-Small-3.1 and 3.2, Magistral, Ministral-3: patches of 14, merged two by two, L = 1,540.
"""

from __future__ import annotations

from math import floor, isqrt
from typing import Final

from gateway.errors import AspectRatioExceeded
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.covering import CoveringFamily
from gateway.models.geometry import check_sides
from gateway.types import Size


class _LongestEdge:
    stretches = True

    def content(self, size: Size, checkpoint: Checkpoint) -> Size:
        width, height, longest = size.width, size.height, isqrt(checkpoint.max_pixels)
        if width < 1 or height < 1:
            check_sides(size)
        ratio = max(height / longest, width / longest)
        if ratio <= 1:
            return size
        return self.shrunk(size, ratio)

    def shrunk(self, size: Size, ratio: float) -> Size:
        """transformers: rounded down."""
        width, height = floor(size.width / ratio), floor(size.height / ratio)
        if width < 1 or height < 1:
            raise AspectRatioExceeded(
                f"Scaled to the model's longest edge, nothing of the image's short side is left ({size})."
            )
        return Size(width, height)

    def most_cells(self, checkpoint: Checkpoint) -> int:
        return self.longest_cells(checkpoint) ** 2

    def longest_cells(self, checkpoint: Checkpoint) -> int:
        return max(1, isqrt(checkpoint.max_pixels) // checkpoint.factor)


class _RoundedLongestEdge(_LongestEdge):
    def shrunk(self, size: Size, ratio: float) -> Size:
        """mistral_common: half to even, at least one pixel."""
        return Size(max(round(size.width / ratio), 1), max(round(size.height / ratio), 1))


PIXTRAL_HF: Final = CoveringFamily(
    name="pixtral_hf",
    knob="mm_processor_kwargs.size.longest_edge",
    wrapper_tokens=0,
    rule=_LongestEdge(),
    row_marks=True,
)
PIXTRAL_MISTRAL: Final = CoveringFamily(
    name="pixtral_mistral",
    knob="none in Mistral's own format: one cell is the least of any image",
    wrapper_tokens=0,
    rule=_RoundedLongestEdge(),
    row_marks=True,
)
