"""A request's prompt in the engines' own blocks, where somebody publishes which blocks it holds.

Decided here: when the token ids of a request are known for certain, with everything that engines hash beside them. Not
decided here: how blocks are hashed (`routing.blocks`), who holds them (``ports.upstream``). Costs nothing where no KV
events are followed, since then no count comes with its tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gateway.policy.effective import CacheSalt, EffectivePolicy
from gateway.ports import PromptCount
from gateway.routing.ask import RouteAsk
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import expanded
from gateway.stages.trip import Trip
from gateway.types import Call, ImagePlan, TenantId, TokenEstimate


async def with_blocks(ask: RouteAsk, trip: Trip, ids: Sequence[str | None] = ()) -> RouteAsk:
    """The question with the prompt's blocks, looked up ahead where they are many; ``ids``: what vLLM gets as uuid."""
    if trip.counted is None or trip.counted.raw is None or len(trip.x.ports.upstream.views()) < 2:
        return ask  # nothing is known, or there is nothing to choose
    spoken = Spoken(trip.counted, trip.estimate, trip.policy, trip.call, trip.plans, ids)
    asked = naming_blocks(ask, spoken, trip.x.world.cache_salt)
    if asked.key.prompt is not None:
        await trip.x.ports.upstream.look_ahead(asked.key)
    return asked


@dataclass(frozen=True, slots=True)
class Spoken:
    """A request as far as its prompt goes."""

    counted: PromptCount | None
    estimate: TokenEstimate
    policy: EffectivePolicy
    call: Call
    plans: Sequence[ImagePlan]
    ids: Sequence[str | None]


def naming_blocks(ask: RouteAsk, spoken: Spoken, salt: Callable[[TenantId, str | None], str]) -> RouteAsk:
    """The question with the prompt's blocks, if they are certain."""
    counted, plans, policy = spoken.counted, spoken.plans, spoken.policy
    if counted is None or counted.raw is None or not _is_certain(spoken):
        return ask
    lengths = [plan.after.tokens if plan.after.struct_tokens == 0 else 0 for plan in plans]
    known = spoken.ids or (None,) * len(lengths)
    salted = None
    if policy.cache_salt is not CacheSalt.NONE and not policy.shadow:
        salted = salt(policy.tenant, spoken.call.user if policy.cache_salt is CacheSalt.USER else None)
    prompt = expanded(counted.raw, lengths, known, salted)
    return ask if prompt is None else replace(ask, key=replace(ask.key, prompt=PromptChains(prompt, policy.model)))


def _is_certain(spoken: Spoken) -> bool:
    """Whether the engine will make just these tokens of it: nothing kept by the client's wish, no other media."""
    call = spoken.call
    if not spoken.estimate.exact or call.other_media or call.is_continued:
        return False
    return not spoken.policy.engine_fields.allows_any(call.foreign_fields)
