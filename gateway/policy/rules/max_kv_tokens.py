"""How many tokens of KV cache one request may come to hold: prompt and output. Refused on the lower bound only."""

from __future__ import annotations

from gateway.errors import TooManyTokens
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import Amount


def _measured(values: RuleValues, measured: Measured) -> TooManyTokens | None:
    limit, estimate = values.max_kv_tokens, measured.estimate
    if limit is None:
        return None
    least = estimate.prompt_lower_bound + estimate.output_tokens
    if least <= limit:
        return None
    return TooManyTokens(
        f"Prompt and output need at least {least} tokens of KV cache, the limit is {limit}.", rule="max_kv_tokens"
    )


RULE = Rule(
    key="max_kv_tokens",
    summary="KV tokens per request: prompt and reserved output.",
    kind=Amount("max_kv_tokens", 1, 10**9, word="none"),
    default=None,
    measured=_measured,
)
