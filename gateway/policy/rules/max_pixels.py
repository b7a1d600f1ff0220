"""The cap on an image's size: what is larger is shrunk to it, or refused where the policy says so.

``engine`` is the served model's own cap, to which the engine would shrink the image anyway. The floor of the range is
the smallest cap a model takes (Qwen2-VL's min_pixels, 56 x 56). Shrinking itself is planned in `models`.
"""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import Excess, Geometry, RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import PIXEL_UNITS, Amount


def _refuses(values: RuleValues) -> bool:
    """An image that may not be resized cannot meet a number; the engine's own cap the engine itself will apply."""
    if values.on_excess.max_pixels is Excess.REJECT:
        return True
    return values.geometry is Geometry.PRESERVE and values.max_pixels is not None


def _measured(values: RuleValues, measured: Measured) -> ImageTooLarge | None:
    if not _refuses(values):
        return None
    for image in measured.images:
        if image.cap_pixels is not None and image.raster.pixels > image.cap_pixels:
            return ImageTooLarge(
                f"The image has {image.raster.pixels} pixels ({image.raster}), the limit is {image.cap_pixels} and the "
                "policy does not let images be shrunk.",
                part=image.name,
                rule="max_pixels",
            )
    return None


RULE = Rule(
    key="max_pixels",
    summary="Cap on pixels per image: a larger one is shrunk. `engine`: the served model's own cap.",
    kind=Amount("max_pixels", 3_136, 10**9, PIXEL_UNITS, products=True, word="engine"),
    default=None,
    measured=_measured,
    of_images=True,
)
