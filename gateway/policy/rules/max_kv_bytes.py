"""How many bytes of KV cache one request may come to hold, by the served model's own layers (`models.kv`).

The same prompt costs one model thirty times what it costs another; this limit means the same for all of them. A model
whose layers are not known has no price, and nothing is refused for it.
"""

from __future__ import annotations

from gateway.errors import TooManyTokens
from gateway.policy.effective import RuleValues
from gateway.policy.rule import Measured, Rule
from gateway.policy.values import BYTE_UNITS, Amount


def _measured(values: RuleValues, measured: Measured) -> TooManyTokens | None:
    limit, least = values.max_kv_bytes, measured.kv_bytes
    if limit is None or least is None or least <= limit:
        return None
    return TooManyTokens(
        f"Prompt and output need at least {least} bytes of KV cache, the limit is {limit}.", rule="max_kv_bytes"
    )


RULE = Rule(
    key="max_kv_bytes",
    summary="Bytes of KV cache per request, prompt and reserved output, by the served model's own layers.",
    kind=Amount("max_kv_bytes", 1, 2**50, BYTE_UNITS, word="none"),
    default=None,
    measured=_measured,
)
