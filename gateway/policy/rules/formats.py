"""Which image formats are accepted, told by the bytes and never by the declared media type."""

from __future__ import annotations

from gateway.errors import UnsupportedFormat
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Choice, ChoiceList
from gateway.types import ImageFormat

# What the gateway decodes; the other members of ImageFormat are recognised only to be named in a refusal.
DECODED = (
    ImageFormat.JPEG,
    ImageFormat.PNG,
    ImageFormat.WEBP,
    ImageFormat.GIF,
    ImageFormat.BMP,
    ImageFormat.TIFF,
)


def _measured(values: RuleValues, measured: Measured) -> UnsupportedFormat | None:
    for image in measured.images:
        if image.format not in values.formats:
            return UnsupportedFormat(
                f"The image is {image.format.upper()}, accepted are {', '.join(values.formats)}.",
                part=image.name,
                rule="formats",
            )
    return None


RULE = Rule(
    key="formats",
    summary="Accepted image formats, told by the file's own bytes.",
    kind=ChoiceList(Choice(ImageFormat, DECODED)),
    default=DECODED,
    measured=_measured,
    of_images=True,
)
