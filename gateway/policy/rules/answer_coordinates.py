"""Whose picture the boxes and points of an answer are about: the one the model saw, or the one the client sent."""

from __future__ import annotations

from gateway.policy.effective import Coordinates
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="answer_coordinates",
    summary="`original`: boxes and points in answers of Qwen's models become pixels of the image as it was sent; the "
    "header `x-vlmgw-coordinates` asks for either.",
    kind=Choice(Coordinates),
    default=Coordinates.MODEL,
)
