"""How large a raster may be that is decoded at all: the guard against decompression bombs, read from the header.

The default is 100 megapixels: about 300 MB of RGB, above every phone's and scanner's usual output (a 108-megapixel
sensor's full mode needs a higher limit), below what Pillow, and with it vLLM, refuses (178,956,970).
"""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import PIXEL_UNITS, Amount


def _measured(values: RuleValues, measured: Measured) -> ImageTooLarge | None:
    for image in measured.images:
        if image.raster.pixels > values.max_input_pixels:
            return ImageTooLarge(
                f"The image has {image.raster.pixels} pixels ({image.raster}), the limit is {values.max_input_pixels}.",
                part=image.name,
                rule="max_input_pixels",
            )
    return None


RULE = Rule(
    key="max_input_pixels",
    summary="Pixels an image may have before anything is decoded; above it the request is refused.",
    kind=Amount("max_input_pixels", 1, 10**9, PIXEL_UNITS, products=True),
    default=100_000_000,
    measured=_measured,
    of_images=True,
)
