"""How many bytes all image files of a request may have together, as they come; what counts: `max_image_bytes`."""

from __future__ import annotations

from gateway.errors import ImageTooLarge
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule, fewest_bytes, first_beyond
from gateway.policy.values import BYTE_UNITS, Amount
from gateway.types import Call


def _declared(values: RuleValues, call: Call) -> ImageTooLarge | None:
    limit = values.max_total_bytes
    if limit is None:
        return None
    fewest = [fewest_bytes(image.source) for image in call.images]
    total = sum(fewest)
    if total <= limit:
        return None
    return ImageTooLarge(
        f"The images have at least {total} bytes together, the limit is {limit}.",
        part=call.images[first_beyond(fewest, limit)].name,
        rule="max_total_bytes",
    )


def _measured(values: RuleValues, measured: Measured) -> ImageTooLarge | None:
    limit = values.max_total_bytes
    if limit is None:
        return None
    counts = [image.byte_count for image in measured.images]
    total = sum(counts)
    if total <= limit:
        return None
    return ImageTooLarge(
        f"The images have {total} bytes together, the limit is {limit}.",
        part=measured.images[first_beyond(counts, limit)].name,
        rule="max_total_bytes",
    )


RULE = Rule(
    key="max_total_bytes",
    summary="Bytes of all image files of a request together (not of their base64).",
    kind=Amount("max_total_bytes", 1, 2**40, BYTE_UNITS, word="none"),
    default=None,
    declared=_declared,
    measured=_measured,
    of_images=True,
)
