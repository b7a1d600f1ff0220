"""What becomes of images above `max_pixels` or `max_image_tokens`; the comparisons live with those rules."""

from __future__ import annotations

from gateway.policy.effective import OnExcess
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="on_excess",
    summary="Images above `max_pixels` or `max_image_tokens`: `shrink` them, or `reject` the request.",
    kind=Choice(OnExcess),
    default=OnExcess.SHRINK,
)
