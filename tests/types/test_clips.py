"""Videos and sounds on their way."""

from __future__ import annotations

from gateway.types import ClipPlan, Container, Size


def test_every_container_has_its_media_type() -> None:
    assert all("/" in container.media_type for container in Container)
    assert Container.FRAMES.media_type == "video/jpeg"  # what vLLM takes for a list of JPEG files


def test_a_plan_without_frames_keeps_the_file() -> None:
    assert ClipPlan("v").keeps_file
    assert not ClipPlan("v", Size(64, 64), (0, 4)).keeps_file
