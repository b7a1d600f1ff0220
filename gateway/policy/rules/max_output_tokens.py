"""How many tokens a request may ask to be generated, all choices together.

Bodies are never given a field the client did not send, so a request without a limit of its own is refused where this
rule is set: it would ask for all that the context holds.
"""

from __future__ import annotations

from gateway.errors import TooManyTokens
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Rule
from gateway.policy.values import Amount
from gateway.types import Call


def _declared(values: RuleValues, call: Call) -> TooManyTokens | None:
    limit = values.max_output_tokens
    if limit is None:
        return None
    if call.output_limit_tokens is None:
        return TooManyTokens(
            f"The request sets no output limit, the policy asks for one of at most {limit} tokens.",
            part=call.output_limit_field,
            rule="max_output_tokens",
        )
    actual = call.output_limit_tokens * max(call.choices, 1)
    if actual <= limit:
        return None
    return TooManyTokens(
        f"The request asks for {actual} output tokens, the limit is {limit}.",
        part=call.output_limit_field,
        rule="max_output_tokens",
    )


RULE = Rule(
    key="max_output_tokens",
    summary="Output tokens per request over all choices; requests must then set a limit of their own.",
    kind=Amount("max_output_tokens", 1, 10**9, word="none"),
    default=None,
    declared=_declared,
)
