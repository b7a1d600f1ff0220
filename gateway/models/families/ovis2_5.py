"""Ovis2.5: patches of 16, merged two by two; Qwen's rule with gentler guards.

Checked against vLLM 0.32.0 (`Ovis2_5Processor`). Sides below one cell are scaled up; longer shapes than 200:1 are cut
to 200:1 instead of refused, but not where a side was scaled up. Nothing keeps the short side from being scaled down to
no cell at all, on which the image library fails: such strips (from about 3,137:1 on) are refused here. The start and
end marks are image positions, so they count as image tokens; the position advances by every token (Qwen3 decoder).
"""

from __future__ import annotations

from math import floor, inf, sqrt
from typing import Final

from gateway.errors import AspectRatioExceeded
from gateway.models.checkpoint import Checkpoint
from gateway.models.families.grid import GridFamily, SmartResize
from gateway.models.geometry import check_sides, smart_resize
from gateway.types import Size


class _Ovis(SmartResize):
    serves_any = True

    def seen(self, size: Size, checkpoint: Checkpoint) -> Size:
        width, height, factor = size.width, size.height, checkpoint.patch * checkpoint.merge
        if width < factor or height < factor:
            check_sides(size)
            if height < width:
                return Size(round(factor / height * width), factor)
            return Size(factor, round(factor / width * height))
        longest = int(checkpoint.max_ratio) * min(width, height)
        return size if max(width, height) <= longest else Size(min(width, longest), min(height, longest))

    def resized(self, seen: Size, checkpoint: Checkpoint) -> Size:
        """A floor above the cap is the cap."""
        factor, most = checkpoint.patch * checkpoint.merge, checkpoint.max_pixels
        least = min(checkpoint.min_pixels, most)
        made = smart_resize(seen, factor=factor, min_pixels=least, max_pixels=most, max_ratio=inf)
        if min(made.width, made.height) == factor and self.shrinks(seen, checkpoint):
            shrink = sqrt((seen.height * seen.width) / most)
            if floor(min(seen.width, seen.height) / shrink / factor) < 1:
                raise AspectRatioExceeded(
                    f"Scaled to the model's {most} pixels, the image's short side is below {factor} pixels ({seen})."
                )
        return made


OVIS2_5: Final = GridFamily(
    name="ovis2_5",
    knob="mm_processor_kwargs.min_pixels",
    wrapper_tokens=0,
    rule=_Ovis(),
    edge_tokens=2,
    mrope=False,
)
