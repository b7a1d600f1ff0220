"""Qwen2-VL and Qwen2.5-VL: patches of 14, merged two by two, so one token is 28 x 28 pixels.

Both use the same image processor and the same `smart_resize`; Qwen2.5's windowed encoder changes cost, not counts.
Checked against transformers 5.19.0 (`Qwen2VLProcessor` and `get_number_of_image_patches`), which vLLM 0.32.0 and
SGLang 0.5.23 both run. Every image stands between `<|vision_start|>` and `<|vision_end|>`, which the chat template
writes. The position advances by the longer side of the token grid (`get_rope_index`).
"""

from __future__ import annotations

from typing import Final

from gateway.models.families.grid import GridFamily

QWEN2_VL: Final = GridFamily(name="qwen2_vl", knob="mm_processor_kwargs.min_pixels", wrapper_tokens=2)
