"""What a claim is refused with, in words that tell the client what to do.

Decided here: the error, its words and its rule; what no waiting could help. Not decided here: whether it is refused
(the store), how long it would wait (`outlook`).
"""

from __future__ import annotations

from gateway.errors import (
    BackendsFull,
    GatewayError,
    InFlightExhausted,
    KvBudgetExhausted,
    LimitExceeded,
    RateExceeded,
    TooManyTokens,
)
from gateway.quota.claim import Charge, Claim, Hold, Unit
from gateway.quota.standing import amount_of, window_of
from gateway.quota.store import Denied

_NOUNS = {
    Unit.REQUESTS: "request",
    Unit.TOKENS: "tokens",
    Unit.IMAGES: "images",
    Unit.MEGAPIXELS: "megapixels",
    Unit.IMAGE_TOKENS: "image tokens",
    Unit.PROMPT_TOKENS: "prompt tokens",
    Unit.OUTPUT_TOKENS: "output tokens",
    Unit.KV_TOKEN_SECONDS: "KV token-seconds",
    Unit.KV_TOKENS: "KV tokens",
    Unit.KV_BYTES: "KV bytes",
}


def impossible(claim: Claim) -> GatewayError | None:
    """The refusal of what would not even fit an untouched budget; the request itself is at fault."""
    for hold in claim.holds:
        if hold.limit is not None and hold.amount > hold.limit:
            noun = _NOUNS[hold.unit]
            message = f"The request may need {hold.amount} {noun}, more than the whole budget of {hold.limit}."
            return TooManyTokens(message, rule=hold.rule)
    for charge in claim.charges:
        if not charge.is_possible:
            most = amount_of(charge.unit, charge.rate.burst_amount)
            message = (
                f"The request has {amount_of(charge.unit, charge.amount)} {_NOUNS[charge.unit]}; "
                f"no more than {most} may come at once."
            )
            return LimitExceeded(message, rule=charge.rule)
    return None


def refusal(denied: Denied | None, retry_after_s: float, kv_tokens: int) -> GatewayError:
    """The error for what did not or will not pass in time; ``denied`` None: no backend has room."""
    if denied is None:
        message = f"{BackendsFull.summary} It may need {kv_tokens} KV tokens."
        return BackendsFull(message, rule="backend_kv", retry_after_s=retry_after_s)
    limit = denied.limit
    if isinstance(limit, Charge):
        return RateExceeded(_rate_message(limit), rule=limit.rule, retry_after_s=retry_after_s)
    kind = InFlightExhausted if limit.unit is Unit.REQUESTS else KvBudgetExhausted
    return kind(_hold_message(limit, denied.in_use), rule=limit.rule, retry_after_s=retry_after_s)


def _hold_message(hold: Hold, in_use: int) -> str:
    if hold.unit is Unit.REQUESTS:
        return f"{in_use} of {hold.limit} requests are in flight."
    return f"The request may need {hold.amount} {_NOUNS[hold.unit]}; {in_use} of {hold.limit} are in flight."


def _rate_message(charge: Charge) -> str:
    amount, limit = amount_of(charge.unit, charge.amount), amount_of(charge.unit, charge.rate.amount)
    noun = "requests" if charge.unit is Unit.REQUESTS else _NOUNS[charge.unit]
    allowed = f"The rate of {limit} {noun} per {window_of(charge.rate)} is used up for now"
    return f"{allowed}." if charge.amount == 0 else f"{allowed}; this request has {amount}."
