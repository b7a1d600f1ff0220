"""Whether images come out upright. vLLM obeys the tag, SGLang does not; normalised, both see one picture."""

from __future__ import annotations

from gateway.policy.effective import Orientation
from gateway.policy.rule import Rule
from gateway.policy.values import Choice

RULE = Rule(
    key="orientation",
    summary="`normalise` turns images upright; `preserve` leaves one alone that only its tag would change.",
    kind=Choice(Orientation),
    default=Orientation.NORMALISE,
)
