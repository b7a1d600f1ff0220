"""Whether a file that ends before its picture does is refused, or decoded as far as it goes."""

from __future__ import annotations

from gateway.policy.effective import Truncated
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="truncated",
    summary="Files cut off within the picture: `reject`, or `salvage` what is there of JPEG, PNG, GIF, BMP and TIFF.",
    kind=Choice(Truncated),
    default=Truncated.REJECT,
)
