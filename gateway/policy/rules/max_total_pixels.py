"""How many pixels all images of a request may have together as they are delivered, after every cap on single ones.

One number for the request instead of the worst case of each image: ten thumbnails are no ten photographs. `shrink`
lowers the largest images to one common cap, so that small ones keep all they have.
"""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule, first_beyond
from gateway.policy.values import PIXEL_UNITS, Amount


def _measured(values: RuleValues, measured: Measured) -> ImageTooLarge | None:
    limit = values.max_total_pixels
    if limit is None:
        return None
    pixels = [image.delivered.pixels for image in measured.images]
    total = sum(pixels)
    if total <= limit:
        return None
    return ImageTooLarge(
        f"The images have {total} pixels together, the limit is {limit}.",
        part=measured.images[first_beyond(pixels, limit)].name,
        rule="max_total_pixels",
    )


RULE = Rule(
    key="max_total_pixels",
    summary="Pixels of all images of a request together, as they are delivered.",
    kind=Amount("max_total_pixels", 3_136, 10**12, PIXEL_UNITS, products=True, word="none"),
    default=None,
    measured=_measured,
    of_images=True,
)
