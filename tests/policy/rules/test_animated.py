from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import FIRST, Selection, Several
from gateway.policy.rule import Measured
from gateway.policy.rules.animated import RULE
from gateway.types import ImageFormat
from tests.policy.examples import estimate, image, policy


def test_several_frames_are_refused_only_where_the_policy_says_so() -> None:
    assert RULE.measured is not None
    images = Measured([image(), image(kind=ImageFormat.GIF, frames=3)], estimate())
    assert RULE.measured(policy(animated=FIRST), images) is None
    error = RULE.measured(policy(animated=Selection(Several.REJECT)), images)
    assert error is not None
    assert error.message == "The image has 3 frames, the policy accepts still images only."


def test_a_still_gif_is_no_animation() -> None:
    assert RULE.measured is not None
    still = Measured([image(kind=ImageFormat.GIF)], estimate())
    assert RULE.measured(policy(animated=Selection(Several.REJECT)), still) is None


def test_frames_that_would_have_to_be_composed_count_as_pixels() -> None:
    assert RULE.measured is not None
    images = Measured([image(kind=ImageFormat.GIF, frames=3)], estimate())
    sampling = Selection(Several.MANY, 2, "sample")
    assert RULE.measured(policy(animated=sampling), images) is None
    error = RULE.measured(policy(animated=sampling, max_input_pixels=448 * 448 * 3 - 1), images)
    assert isinstance(error, ImageTooLarge)
    assert error.message == "The animation has 602112 pixels (3 frames of 448x448), the limit is 602111."


def test_pages_are_no_frames() -> None:
    assert RULE.measured is not None
    document = Measured([image(kind=ImageFormat.TIFF, frames=3)], estimate())
    assert RULE.measured(policy(animated=Selection(Several.REJECT)), document) is None


def test_animations_of_which_only_the_primary_picture_is_decoded_cannot_be_sampled() -> None:
    assert RULE.measured is not None
    images = Measured([image(kind=ImageFormat.AVIF, frames=3)], estimate())
    assert RULE.measured(policy(), images) is None
    error = RULE.measured(policy(animated=Selection(Several.MANY, 2, "sample")), images)
    assert error is not None
    assert error.message == "Frames of an animated AVIF cannot be sampled; send GIF, WebP or PNG."
