"""What becomes of an image above `max_pixels`; the comparison itself lives with that rule."""

from __future__ import annotations

from gateway.policy.effective import OnExcess
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="on_excess",
    summary="An image above `max_pixels`: `shrink` it, or `reject` the request.",
    kind=Choice(OnExcess),
    default=OnExcess.SHRINK,
)
