"""The format in which a changed image is delivered; an unchanged one keeps its own bytes."""

from __future__ import annotations

from gateway.policy.rule import Rule
from gateway.policy.values import Choice
from gateway.types import OutputFormat

RULE = Rule(
    key="output",
    summary="Format of changed images; `auto`: JPEG for photographs, PNG for screens, charts and text, by content.",
    kind=Choice(OutputFormat),
    default=OutputFormat.AUTO,
)
