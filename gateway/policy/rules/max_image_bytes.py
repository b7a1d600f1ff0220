"""How many bytes one image file may have.

The exact count is known once a source was decoded or fetched; a source string that is far too long is refused before.
Base64 spells 3 bytes in 4 characters; line breaks, escaped slashes and the data URL's head are granted one tenth and
1 KiB on top. Spellings that waste more than that (every character percent-encoded) meet the limit earlier than their
decoded size would. The default is what a body of 64 MiB, the gateway's own default limit, can hold in base64.
"""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule, is_spelled_longer, spelled_bytes
from gateway.policy.values import BYTE_UNITS, Amount
from gateway.types import Call


def _declared(values: RuleValues, call: Call) -> ImageTooLarge | None:
    limit = values.max_image_bytes
    for image in call.images:
        if is_spelled_longer(image.source, limit):
            return ImageTooLarge(
                f"The image is spelled in {spelled_bytes(image.source)} bytes, "
                f"too many for one of at most {limit} bytes.",
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
