"""What routing is asked, from what the stages found."""

from __future__ import annotations

from dataclasses import replace

from gateway.routing.holding import RouteKey
from tests.journey.scenes import SETTINGS, SHADOW, TWO_IMAGES, VIDEO_URL, Setting, clip_body
from tests.journey.test_journey import traveled
from tests.policy.examples import policy_set


def key_of(setting: Setting) -> RouteKey:
    return traveled(setting).upstream.keys[0]


def test_every_image_has_its_patches_and_tokens() -> None:
    key = key_of(SETTINGS["two images"])
    assert len(key.images) == len(key.patches) == len(key.tokens) > 1
    assert all(patches > 0 for patches in key.patches)


def test_a_video_counts_as_far_as_its_header_told() -> None:
    key = key_of(Setting(clip_body(VIDEO_URL)))
    assert (len(key.images), key.patches) == (1, (2 * 320,))


def test_text_has_no_images() -> None:
    assert key_of(SETTINGS["text"]).images == ()


def test_what_is_made_of_a_file_is_known_by_its_size_and_lives_where_the_file_does() -> None:
    """An engine that holds a picture of one size holds nothing of another; what is passed on untouched is the file."""
    small = SETTINGS["two images"]
    large = replace(small, policies=policy_set(default="rules:\n  max_pixels: 802816\n"))
    shrunk, larger, again = key_of(small), key_of(large), key_of(small)
    assert shrunk == again
    assert shrunk.images[0] != larger.images[0]
    assert shrunk.images[1] == larger.images[1] == TWO_IMAGES[1].placement
    assert shrunk.chain[0] != larger.chain[0]
    assert shrunk.home == larger.home
    assert len(shrunk.ends) == len(larger.ends) == 2


def test_a_shadow_sends_the_files() -> None:
    key = key_of(replace(SETTINGS["two images"], policies=SHADOW))
    assert key.images == tuple(each.placement for each in TWO_IMAGES)
