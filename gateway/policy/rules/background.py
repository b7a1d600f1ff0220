"""The colour that shows through where an image is transparent; engines see no transparency."""

from __future__ import annotations

from gateway.policy.rule import Rule
from gateway.policy.values import Colour

RULE = Rule(
    key="background",
    summary="Colour behind transparent pixels, as [red, green, blue].",
    kind=Colour(),
    default=(255, 255, 255),
)
