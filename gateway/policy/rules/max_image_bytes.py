"""How many bytes one image file may have.

The exact count is known once a source was decoded or fetched; a source string that is far too long is refused before.
Base64 spells 3 bytes in 4 characters; line breaks, escaped slashes and the data URL's head are granted one tenth and
1 KiB on top. Spellings that waste more than that (every character percent-encoded) meet the limit earlier than their
decoded size would. The default is what a body of 64 MiB, the gateway's own default limit, can hold in base64.
"""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import BYTE_UNITS, Amount
from gateway.types import Call, ImagePart, LongString

_HEAD_BYTES = 1024


def _spelled_bytes(image: ImagePart) -> int:
    source = image.source
    return source.span.byte_count if isinstance(source, LongString) else len(source)


def fewest_bytes(image: ImagePart) -> int:
    """How many bytes the file behind a data URL has at least, before it is decoded; 0 for an address."""
    if isinstance(image.source, str) and image.source[:5].lower() != "data:":
        return 0
    return max(0, 30 * (_spelled_bytes(image) - _HEAD_BYTES) // 44)


def _declared(values: RuleValues, call: Call) -> ImageTooLarge | None:
    limit = values.max_image_bytes
    for image in call.images:
        spelled_bytes = _spelled_bytes(image)
        if 30 * (spelled_bytes - _HEAD_BYTES) > 44 * limit:  # 44/30 = 4/3 x 1.1
            return ImageTooLarge(
                f"The image is spelled in {spelled_bytes} bytes, too many for one of at most {limit} bytes.",
                part=image.name,
                rule="max_image_bytes",
            )
    return None


def _measured(values: RuleValues, measured: Measured) -> ImageTooLarge | None:
    for image in measured.images:
        if image.byte_count > values.max_image_bytes:
            return ImageTooLarge(
                f"The image has {image.byte_count} bytes, the limit is {values.max_image_bytes}.",
                part=image.name,
                rule="max_image_bytes",
            )
    return None


RULE = Rule(
    key="max_image_bytes",
    summary="Bytes of one image file (not of its base64).",
    kind=Amount("max_image_bytes", 1, 2**30, BYTE_UNITS),
    default=48 * 2**20,
    declared=_declared,
    measured=_measured,
    of_images=True,
)
