"""ERNIE-4.5-VL: patches of 14, merged two by two; Qwen's rule with a smaller cap.

Checked against transformers 5.19.0 (`Ernie4_5_VLMoeProcessor`), whose class defaults the cap is from (4,842,768 pixels,
6,177 tokens); the checkpoint's own remote code names the keys `min_pixels` and `max_pixels`. Every image stands between
`<|IMAGE_START|>` and `<|IMAGE_END|>`; the template's "Picture 1:" before it is text. The position advances by the
longer side of the token grid (`get_rope_index`).
"""

from __future__ import annotations

from typing import Final

from gateway.models.families.grid import GridFamily

ERNIE4_5_VL: Final = GridFamily(name="ernie4_5_vl", knob="mm_processor_kwargs.size.shortest_edge", wrapper_tokens=2)
