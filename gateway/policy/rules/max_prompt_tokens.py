"""How many tokens a prompt may have, images included. Refused only when even the lower bound is too many."""

from __future__ import annotations

from gateway.errors import TooManyTokens
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount


def _measured(values: RuleValues, measured: Measured) -> TooManyTokens | None:
    limit, least = values.max_prompt_tokens, measured.estimate.prompt_lower_bound
    if limit is None or least <= limit:
        return None
    return TooManyTokens(f"The prompt needs at least {least} tokens, the limit is {limit}.", rule="max_prompt_tokens")


RULE = Rule(
    key="max_prompt_tokens",
    summary="Prompt tokens per request, text and images together.",
    kind=Amount("max_prompt_tokens", 1, 10**9, word="none"),
    default=None,
    measured=_measured,
)
