"""Qwen3-VL, Qwen3.5 and Qwen3.6: patches of 16, merged two by two, so one token is 32 x 32 pixels.

The processor is Qwen2-VL's with other numbers: a floor of 256 x 256 pixels makes every smaller image cost 64 tokens or
more. Checked against transformers 5.19.0. DeepStack feeds three encoder levels to the decoder without adding tokens.
Every image stands between `<|vision_start|>` and `<|vision_end|>`. Video is not like several images here: each pair of
frames carries its own timestamp text.
"""

from __future__ import annotations

from typing import Final

from gateway.models.families.grid import GridFamily

QWEN3_VL: Final = GridFamily(name="qwen3_vl", knob="mm_processor_kwargs.min_pixels", wrapper_tokens=2)
