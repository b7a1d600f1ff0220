"""Positions add up over text, images and clips."""

from __future__ import annotations

from gateway.models.catalog import shipped_catalog
from gateway.models.families import family_of
from gateway.models.positions import next_position, position_delta
from gateway.models.video import QWEN3_VL, Clip, video_tokens
from gateway.types import Size

CHECKPOINT = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint


def test_an_image_advances_by_its_longer_side_and_a_clip_by_all_its_patches() -> None:
    image = family_of("qwen3_vl").image_tokens(Size(1280, 720), CHECKPOINT)
    clip = video_tokens(Clip(Size(1280, 720), 240, 24.0), CHECKPOINT, QWEN3_VL)
    assert (image.tokens, image.position_advance) == (880, 40)
    assert next_position(10, [image, clip]) == 10 + 40 + 10 * 40
    assert position_delta([image]) == -840
    assert next_position(7, ()) == 7
