"""How near a resized image comes to a full decode and one bicubic resize; less near is cheaper to make."""

from __future__ import annotations

from gateway.policy.rule import Rule
from gateway.policy.values import Choice
from gateway.types import Fidelity

RULE = Rule(
    key="fidelity",
    summary="`exact`: 45 dB and more to a full decode; `fast`: 40 dB, a quarter less CPU for photographs.",
    kind=Choice(Fidelity),
    default=Fidelity.EXACT,
)
