"""The rules, one file each, in the order in which they are documented and checked.

To add one: its file here, its line below, and the typed field of its value in `policy.effective.RuleValues`; the
published schema, the checks and the documentation's table follow.
"""

from __future__ import annotations

from gateway.policy.rule import Rule
from gateway.policy.rules import (
    animated,
    background,
    buckets,
    detail,
    fidelity,
    formats,
    geometry,
    jpeg_quality,
    max_audio_bytes,
    max_audio_s,
    max_audios,
    max_image_bytes,
    max_image_tokens,
    max_images,
    max_input_pixels,
    max_input_side,
    max_kv_bytes,
    max_kv_tokens,
    max_output_tokens,
    max_pixels,
    max_prompt_tokens,
    max_side,
    max_total_bytes,
    max_total_pixels,
    max_video_bytes,
    max_video_frames,
    max_video_s,
    max_video_tokens,
    max_videos,
    on_excess,
    orientation,
    output,
    output_reserve_tokens,
    video,
)

RULES: tuple[Rule, ...] = (
    max_images.RULE,
    max_image_bytes.RULE,
    max_total_bytes.RULE,
    max_input_pixels.RULE,
    max_input_side.RULE,
    formats.RULE,
    animated.RULE,
    max_pixels.RULE,
    max_side.RULE,
    detail.RULE,
    max_total_pixels.RULE,
    on_excess.RULE,
    geometry.RULE,
    orientation.RULE,
    buckets.RULE,
    background.RULE,
    output.RULE,
    jpeg_quality.RULE,
    fidelity.RULE,
    max_image_tokens.RULE,
    max_prompt_tokens.RULE,
    max_output_tokens.RULE,
    output_reserve_tokens.RULE,
    max_kv_tokens.RULE,
    max_kv_bytes.RULE,
    video.RULE,
    max_videos.RULE,
    max_video_bytes.RULE,
    max_video_s.RULE,
    max_video_frames.RULE,
    max_video_tokens.RULE,
    max_audios.RULE,
    max_audio_bytes.RULE,
    max_audio_s.RULE,
)

RULES_BY_KEY: dict[str, Rule] = {rule.key: rule for rule in RULES}
