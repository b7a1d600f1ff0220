"""The quality of JPEGs we encode. At 95 the error of a second encoding stays below that of the resize before it."""

from __future__ import annotations

from gateway.policy.rule import Rule
from gateway.policy.values import Amount

RULE = Rule(
    key="jpeg_quality",
    summary="Quality of JPEGs the gateway encodes.",
    kind=Amount("jpeg_quality", 50, 100),
    default=95,
)
