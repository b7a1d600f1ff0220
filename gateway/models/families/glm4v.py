"""GLM-4.1V, 4.5V and 4.6V: patches of 14, merged two by two; Qwen's rule for a film of two frames.

Checked against transformers 5.19.0 (`Glm4vProcessor` and `Glm46VProcessor`, one rule). A still image is budgeted as two
frames, so that half of `size.longest_edge` and `size.shortest_edge` are its pixels: a checkpoint holds those halves.
Sides below one cell are scaled up together before anything else, and the aspect is checked after that. The processor
does not take `max_pixels` or `min_pixels`. Every image stands between `<|begin_of_image|>` and `<|end_of_image|>`. The
position advances by the longer side of the token grid (`get_rope_index`).
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.grid import GridFamily, SmartResize
from gateway.models.geometry import check_ratio, check_sides
from gateway.types import Size


class _Glm(SmartResize):
    serves_any = True

    def seen(self, size: Size, checkpoint: Checkpoint) -> Size:
        """Both sides are cut to whole pixels after scaling, so that one may end a pixel short of a cell."""
        width, height, factor = size.width, size.height, checkpoint.patch * checkpoint.merge
        if width < factor or height < factor:
            check_sides(size)
            scale = max(factor / height, factor / width)
            width, height = int(width * scale), int(height * scale)
            size = Size(width, height)
        if max(width, height) / min(width, height) > checkpoint.max_ratio:
            check_ratio(size, checkpoint.max_ratio)
        return size


GLM4V: Final = GridFamily(name="glm4v", knob="mm_processor_kwargs.size.shortest_edge", wrapper_tokens=2, rule=_Glm())
