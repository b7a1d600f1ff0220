"""The sizes that resized images are snapped to, for engines that capture one encoder graph per resolution."""

from __future__ import annotations

from gateway.policy.rule import Rule
from gateway.policy.values import Sizes

RULE = Rule(
    key="buckets",
    summary="Sizes to snap images to, never above a cap; an image no bucket resembles keeps its own. Empty: none.",
    kind=Sizes(),
    default=(),
)
