"""How many positions holding image embeddings one request may have. `on_excess: shrink` shares them out first."""

from __future__ import annotations

from gateway.errors import TooManyTokens
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule, first_beyond
from gateway.policy.values import Amount


def _measured(values: RuleValues, measured: Measured) -> TooManyTokens | None:
    limit, actual = values.max_image_tokens, measured.estimate.image_tokens
    if limit is None or actual <= limit:
        return None
    count = len(measured.images)
    noun = "image needs" if count == 1 else "images need"
    part = (
        measured.images[first_beyond([image.tokens or 0 for image in measured.images], limit)].name if count else None
    )
    message = f"The {count} {noun} {actual} tokens, the limit is {limit}."
    return TooManyTokens(message, part=part, rule="max_image_tokens")


RULE = Rule(
    key="max_image_tokens",
    summary="Image tokens per request; `on_excess: shrink` shares them out before anything is refused.",
    kind=Amount("max_image_tokens", 0, 10**9, word="none"),
    default=None,
    measured=_measured,
    of_images=True,
)
