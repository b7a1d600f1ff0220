"""What becomes of an image with several frames: its first frame is used, or the request is refused."""

from __future__ import annotations

from gateway.errors import UnsupportedFormat
from gateway.policy.effective import Animated, RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Choice


def _measured(values: RuleValues, measured: Measured) -> UnsupportedFormat | None:
    if values.animated is not Animated.REJECT:
        return None
    for image in measured.images:
        if image.frames > 1:
            return UnsupportedFormat(
                f"The image has {image.frames} frames, the policy accepts still images only.",
                part=image.name,
                rule="animated",
            )
    return None


RULE = Rule(
    key="animated",
    summary="Images with several frames: use the `first`, or `reject` the request.",
    kind=Choice(Animated),
    default=Animated.FIRST,
    measured=_measured,
    of_images=True,
)
