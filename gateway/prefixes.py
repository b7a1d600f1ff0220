"""A request's prompt in the engines' own blocks, where somebody publishes which blocks it holds.

Decided here: when the token ids of a request are known for certain, with everything that engines hash beside them. Not
decided here: how blocks are hashed (`routing.blocks`), who holds them (``ports.upstream``). Costs nothing where no KV
events are followed, since then no count comes with its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway.policy.effective import CacheSalt, FieldAction
from gateway.routing.ask import RouteAsk
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import expanded
from gateway.trip import Trip


async def with_blocks(ask: RouteAsk, trip: Trip, ids: Sequence[str | None] = ()) -> RouteAsk:
    """The question with the prompt's blocks, looked up ahead where they are many; ``ids``: what vLLM gets as uuid."""
    if trip.counted is None or trip.counted.raw is None or not _is_certain(trip):
        return ask
    lengths = [plan.after.tokens if plan.after.struct_tokens == 0 else 0 for plan in trip.plans]
    known = ids or (None,) * len(lengths)
    prompt = expanded(trip.counted.raw, lengths, known, _salt(trip))
    if prompt is None:
        return ask
    key = replace(ask.key, prompt=PromptChains(prompt))
    await trip.x.ports.upstream.look_ahead(key)
    return replace(ask, key=key)


def _is_certain(trip: Trip) -> bool:
    """Whether the engine will make just these tokens of it: nothing kept by the client's wish, no other media."""
    call, actions = trip.call, trip.policy.engine_fields
    if not trip.estimate.exact or call.other_media or call.is_continued:
        return False
    return not any(actions.action(str(pointer[-1])) is FieldAction.ALLOW for pointer in call.foreign_fields)


def _salt(trip: Trip) -> str | None:
    policy = trip.policy
    if policy.shadow or policy.cache_salt is CacheSalt.NONE:
        return None
    return trip.x.world.cache_salt(policy.tenant, trip.call.user if policy.cache_salt is CacheSalt.USER else None)
