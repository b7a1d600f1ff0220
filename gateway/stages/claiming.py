"""From a policy and an estimate to a claim on the tenant's budgets.

Decided here: what is counted in which unit. Megapixels are those of the images as they came, because that is what is
decoded; image tokens are those that the backend will see. The cost that fairness goes by is the KV tokens plus the
encoder's work. Not decided here: limits (`policy`), numbers of a model (`models`), who waits (`quota`, `state`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from gateway.models.book import ServedModel
from gateway.models.kv import request_kv_bytes
from gateway.policy.effective import EffectivePolicy, RateRule, Urgency
from gateway.quota.claim import Charge, Claim, Hold, Priority, Unit
from gateway.quota.gcra import Rate
from gateway.types import BackendView, Call, ImagePlan, TokenEstimate

# A patch of the vision encoder against a token of prefill, as in routing.ask.Profile: 2e-5 s against 1e-4 s.
PATCHES_PER_TOKEN = 5
_PRIORITIES = {Urgency.HIGH: Priority.HIGH, Urgency.NORMAL: Priority.NORMAL, Urgency.LOW: Priority.LOW}


def claim_of(
    policy: EffectivePolicy,
    served: ServedModel,
    call: Call,
    estimate: TokenEstimate,
    plans: Sequence[ImagePlan],
    views: Sequence[BackendView],
) -> Claim:
    """What one request asks of its tenant's budgets."""
    patches = sum([plan.after.vit_patches for plan in plans]) if plans else 0
    urgency = policy.priority
    return Claim(
        tenant=policy.tenant,
        holds=_holds(policy, served, estimate),
        charges=_charges(policy, call, estimate, plans) if policy.rates else (),
        queue_timeout_s=policy.queue_timeout_s,
        priority=Priority.NORMAL if urgency is Urgency.NORMAL else _PRIORITIES[urgency],
        weight=policy.weight,
        cost=estimate.kv_tokens + patches // PATCHES_PER_TOKEN,
        pool=_pool(served, views),
        prompt_tokens=estimate.prompt_tokens,
        shadow=policy.shadow,
    )


def claim_unread(policy: EffectivePolicy) -> Claim | None:
    """What a request asks whose body nobody reads: to be one request. ``None`` where nothing limits requests."""
    charges = tuple(Charge(unit, 1, rate) for unit, rate in _rates(policy.rates) if unit is Unit.REQUESTS)
    if not charges and policy.requests_in_flight is None:
        return None
    return Claim(
        tenant=policy.tenant,
        holds=(Hold(Unit.REQUESTS, 1, policy.requests_in_flight),),
        charges=charges,
        queue_timeout_s=policy.queue_timeout_s,
        priority=_PRIORITIES[policy.priority],
        weight=policy.weight,
        cost=1,
        shadow=policy.shadow,
    )


def _holds(policy: EffectivePolicy, served: ServedModel, estimate: TokenEstimate) -> tuple[Hold, ...]:
    holds = [Hold(Unit.KV_TOKENS, estimate.kv_tokens, policy.kv_tokens_in_flight)]
    if policy.requests_in_flight is not None:
        holds.append(Hold(Unit.REQUESTS, 1, policy.requests_in_flight))
    if policy.kv_bytes_in_flight is not None:
        kv_bytes = kv_bytes_held(served, estimate.kv_tokens - estimate.output_tokens, estimate)
        if kv_bytes is not None:
            holds.append(Hold(Unit.KV_BYTES, kv_bytes, policy.kv_bytes_in_flight))
    return tuple(holds)


def kv_bytes_held(served: ServedModel, prompt_tokens: int, estimate: TokenEstimate) -> int | None:
    """Bytes of KV cache that the request comes to hold if its prompt has so many positions; limits, budgets and
    explanations take different bounds of it. ``None`` where the model's layers are not known.
    """
    shape = served.checkpoint.kv
    if shape is None:
        return None
    return request_kv_bytes(shape, prompt_tokens, estimate.output_tokens, encoder_tokens=estimate.image_tokens)


def _charges(
    policy: EffectivePolicy, call: Call, estimate: TokenEstimate, plans: Sequence[ImagePlan]
) -> tuple[Charge, ...]:
    amounts = {
        Unit.REQUESTS: 1,
        Unit.TOKENS: estimate.prompt_tokens + estimate.output_tokens,
        Unit.IMAGES: len(call.images),
        Unit.MEGAPIXELS: sum([plan.original.pixels for plan in plans]),
        Unit.IMAGE_TOKENS: estimate.image_tokens,
        Unit.PROMPT_TOKENS: estimate.prompt_tokens,
        Unit.OUTPUT_TOKENS: estimate.output_tokens,
        Unit.KV_TOKEN_SECONDS: 0,  # known when it ends; until then only an old debt is in the way
    }
    return tuple([Charge(unit, amounts[unit], rate) for unit, rate in _rates(policy.rates)])


@lru_cache(maxsize=1_024)
def _rates(rules: tuple[RateRule, ...]) -> tuple[tuple[Unit, Rate], ...]:
    return tuple((Unit(rule.unit), Rate(rule.amount, rule.window_s, rule.burst)) for rule in rules)


def _pool(served: ServedModel, views: Sequence[BackendView]) -> str | None:
    """The model, where a backend lists it; names that only clients know share one pool, so that pools are bounded."""
    for view in views:
        if served.name in view.models:
            return served.name
    return None
