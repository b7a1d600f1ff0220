"""How much output is reserved for a request that sets no limit of its own (never more than the context leaves)."""

from __future__ import annotations

from gateway.policy.rule import Rule
from gateway.policy.values import Amount

RULE = Rule(
    key="output_reserve_tokens",
    summary="Output tokens reserved in the budget where a request sets no limit.",
    kind=Amount("output_reserve_tokens", 0, 10**6),
    default=1_024,
)
