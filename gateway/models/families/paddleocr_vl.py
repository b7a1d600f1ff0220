"""PaddleOCR-VL: patches of 14, merged two by two; Qwen's rule with a high floor and a low cap.

Checked against transformers 5.19.0 (`PaddleOCRVLProcessor`). A height below one cell is scaled up first, then a width,
each with the other side; the aspect is checked after that. Every image costs 188 tokens or more, at most 3,600 or so.
It stands between `<|IMAGE_START|>` and `<|IMAGE_END|>`. The position advances by the longer side of the token grid.
"""

from __future__ import annotations

from typing import Final

from gateway.models.checkpoint import Checkpoint
from gateway.models.families.grid import GridFamily, SmartResize
from gateway.models.geometry import check_ratio, check_sides
from gateway.types import Size


class _Paddle(SmartResize):
    serves_any = True

    def seen(self, size: Size, checkpoint: Checkpoint) -> Size:
        width, height, factor = size.width, size.height, checkpoint.patch * checkpoint.merge
        if width < factor or height < factor:
            check_sides(size)
            if height < factor:
                width, height = round((width * factor) / height), factor
            if width < factor:
                width, height = factor, round((height * factor) / width)
            size = Size(width, height)
        if max(width, height) / min(width, height) > checkpoint.max_ratio:
            check_ratio(size, checkpoint.max_ratio)
        return size


PADDLEOCR_VL: Final = GridFamily(
    name="paddleocr_vl", knob="mm_processor_kwargs.size.shortest_edge", wrapper_tokens=2, rule=_Paddle()
)
