"""What becomes of an animation: its first frame, frames sampled evenly over all of it, or a refusal.

Sampled frames become images of their own, in order, where the one stood: that is the only form every engine and every
family counts alike. To compose a frame all before it are decoded, so under `sample:N` the raster times the frames must
stay within `max_input_pixels`.
"""

from __future__ import annotations

from gateway.errors import ImageTooLarge, Rejected, UnsupportedFormat
from gateway.policy.effective import FIRST, RuleValues, Several
from gateway.policy.rule import Measured, Rule
from gateway.policy.selections import Selections
from gateway.types import ImageFormat

# More pictures of one animation than this are a video, and have their own part types.
_MAX_FRAMES = 16
# Of these only the primary picture is decoded: no decoder here gives single frames safely.
_UNSAMPLED = frozenset({ImageFormat.AVIF, ImageFormat.HEIC})


def _measured(values: RuleValues, measured: Measured) -> Rejected | None:
    for image in measured.images:
        if image.frames < 2 or image.format.is_document:
            continue
        if values.animated.how is Several.REJECT:
            return UnsupportedFormat(
                f"The image has {image.frames} frames, the policy accepts still images only.",
                part=image.name,
                rule="animated",
            )
        if values.animated.how is Several.MANY and image.format in _UNSAMPLED:
            return UnsupportedFormat(
                f"Frames of an animated {image.format.upper()} cannot be sampled; send GIF, WebP or PNG.",
                part=image.name,
                rule="animated",
            )
        pixels = image.raster.pixels * image.frames
        if values.animated.how is Several.MANY and pixels > values.max_input_pixels:
            return ImageTooLarge(
                f"The animation has {pixels} pixels ({image.frames} frames of {image.raster}), "
                f"the limit is {values.max_input_pixels}.",
                part=image.name,
                rule="animated",
            )
    return None


RULE = Rule(
    key="animated",
    summary="Animations: use the `first` frame, `sample:N` frames evenly as N images, or `reject` the request.",
    kind=Selections("sample", 2, _MAX_FRAMES),
    default=FIRST,
    measured=_measured,
    of_images=True,
)
