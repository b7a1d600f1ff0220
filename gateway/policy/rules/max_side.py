"""The cap on an image's longer side, perhaps by how many images a request has: what is longer is shrunk, or refused."""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import Excess, Geometry, RuleValues
from gateway.policy.mappings import Steps, step_at
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount


def _measured(values: RuleValues, measured: Measured) -> ImageTooLarge | None:
    if values.on_excess.max_side is not Excess.REJECT and values.geometry is not Geometry.PRESERVE:
        return None
    limit = step_at(values.max_side, len(measured.images))
    if limit is None:
        return None
    for image in measured.images:
        side = max(image.raster.width, image.raster.height)
        if side > limit:
            return ImageTooLarge(
                f"The image's longer side has {side} pixels ({image.raster}), the limit is {limit} and the policy does "
                "not let images be shrunk.",
                part=image.name,
                rule="max_side",
            )
    return None


RULE = Rule(
    key="max_side",
    summary="Cap on the longer side of an image in pixels, or `{1: 2048, 21: 1024}` from so many images on.",
    kind=Steps(Amount("max_side", 56, 65_535, word="none")),
    default=(),
    measured=_measured,
    of_images=True,
)
