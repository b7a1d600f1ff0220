"""How long an image's longer side may be as it comes, perhaps by how many images a request has. Nothing is shrunk.

`max_side` is the cap to which images are shrunk; this is the limit above which they are refused, as Anthropic refuses
sides above 8,000 pixels, and above 2,000 where a request has more than 20 images.
"""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.mappings import Steps, step_at
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount


def _measured(values: RuleValues, measured: Measured) -> ImageTooLarge | None:
    limit = step_at(values.max_input_side, len(measured.images))
    if limit is None:
        return None
    for image in measured.images:
        side = max(image.raster.width, image.raster.height)
        if side > limit:
            count = len(measured.images)
            return ImageTooLarge(
                f"The image's longer side has {side} pixels ({image.raster}), the limit is {limit} in a request of "
                f"{count} {'image' if count == 1 else 'images'}.",
                part=image.name,
                rule="max_input_side",
            )
    return None


RULE = Rule(
    key="max_input_side",
    summary="Pixels the longer side of an image may have as it comes, or `{1: 8000, 21: 2000}` by image count.",
    kind=Steps(Amount("max_input_side", 56, 65_535, word="none")),
    default=(),
    measured=_measured,
    of_images=True,
)
