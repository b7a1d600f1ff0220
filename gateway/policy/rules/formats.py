"""Which image formats are accepted, told by the bytes and never by the declared media type."""

from __future__ import annotations

from gateway.errors import UnsupportedFormat
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Choice, ChoiceList
from gateway.types import ImageFormat

# What the gateway decodes by default: every raster format with a decoder.
DECODED = (
    ImageFormat.JPEG,
    ImageFormat.PNG,
    ImageFormat.WEBP,
    ImageFormat.GIF,
    ImageFormat.BMP,
    ImageFormat.TIFF,
    ImageFormat.AVIF,
    ImageFormat.HEIC,
    ImageFormat.JPEG2000,
    ImageFormat.ICO,
)
# PDF only where a policy lists it: its renderer is a program for documents, a wider attack surface than any picture's.
# SVG never: it is a program too, and may ask for other files. It is recognised only to be named in a refusal.
ACCEPTED = (*DECODED, ImageFormat.PDF)


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
    summary="Accepted image formats, told by the file's own bytes; `pdf` only where it is listed (extra pdf).",
    kind=ChoiceList(Choice(ImageFormat, ACCEPTED)),
    default=DECODED,
    measured=_measured,
    of_images=True,
)
