"""What routing is asked, from what the stages found."""

from __future__ import annotations

from gateway.dialects.openai_chat import OpenAIChat
from gateway.journey import travel
from gateway.routing.holding import RouteKey
from tests.journey.driver import drive
from tests.journey.scenes import SETTINGS, VIDEO_URL, Setting, clip_body


def key_of(setting: Setting) -> RouteKey:
    scene = setting.scene()
    assert drive(travel(scene.client, OpenAIChat(), scene.ports, setting.world())).escaped is None
    return scene.upstream.keys[0]


def test_every_image_has_its_patches_and_tokens() -> None:
    key = key_of(SETTINGS["two images"])
    assert len(key.images) == len(key.patches) == len(key.tokens) > 1
    assert all(patches > 0 for patches in key.patches)


def test_a_video_counts_as_far_as_its_header_told() -> None:
    key = key_of(Setting(clip_body(VIDEO_URL)))
    assert (len(key.images), key.patches) == (1, (2 * 320,))


def test_text_has_no_images() -> None:
    assert key_of(SETTINGS["text"]).images == ()
