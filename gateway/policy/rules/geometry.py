"""Whether images may be resized at all. `preserve` is for grounding: pixel coordinates stay those of the client."""

from __future__ import annotations

from gateway.policy.effective import Geometry
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="geometry",
    summary="`preserve`: never resize; an image above a `max_pixels` number is then refused.",
    kind=Choice(Geometry),
    default=Geometry.RESIZE,
)
