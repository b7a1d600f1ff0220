"""What a client's `detail` is worth in pixels, as OpenAI's API has it; engines ignore the field.

Under `ignore` it says nothing here either. Otherwise each level is a cap beside `max_pixels`, the smaller counts, and a
word that is no level is refused, as OpenAI does. An image without the field is `auto`; a level without pixels has no
cap of its own. `geometry: preserve` never resizes, whatever a client asks.
"""

from __future__ import annotations

from gateway.errors import InvalidRequest
from gateway.policy.effective import Detail, RuleValues
from gateway.policy.mappings import AmountsByWord, joined_amounts
from gateway.policy.node import shortened
from gateway.policy.rule import Rule
from gateway.policy.values import PIXEL_UNITS, Amount
from gateway.types import Call

_LEVELS = frozenset(Detail)


def detail_pixels(values: RuleValues, level: str | None) -> int | None:
    """The cap that a client's level asks for; ``None`` for no cap of its own."""
    return dict(values.detail).get(level or Detail.AUTO) if values.detail else None


def _declared(values: RuleValues, call: Call) -> InvalidRequest | None:
    if not values.detail:
        return None
    for image in call.images:
        if image.detail is not None and image.detail not in _LEVELS:
            return InvalidRequest(
                f"The detail {shortened(image.detail)!r} is not one of {', '.join(Detail)}.",
                part=image.name,
                rule="detail",
            )
    return None


RULE = Rule(
    key="detail",
    summary="Caps on pixels by the client's `detail` (`low`, `high`, `original`, `auto`). Or `ignore` it.",
    kind=AmountsByWord(Detail, Amount("detail", 3_136, 10**9, PIXEL_UNITS, products=True, word="engine")),
    default=(),
    declared=_declared,
    of_images=True,
    join=joined_amounts,
)
