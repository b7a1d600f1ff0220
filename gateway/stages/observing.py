"""What a decision leaves on its backend, and what the answer teaches routing: how fast that one computes, and whether
it held what was believed.

Decided here: from which answers something is learnt. Not decided here: what (`routing.pace`, `routing.index`).
"""

from __future__ import annotations

from gateway.ports import Upstream
from gateway.record import ExchangeRecord
from gateway.routing.ask import Decision
from gateway.types import RequestCost


def cost_there(cost: RequestCost, decision: Decision, *, streams: bool) -> RequestCost:
    """What the request asks of the backend chosen, which holds some of it. A stream tells its first token."""
    ahead = decision.ahead
    return RequestCost(
        cost.prompt_tokens,
        cost.output_tokens,
        ahead.own_patches,
        min(cost.prompt_tokens, decision.holding.prefix_tokens),
        None if streams else ahead.expected_s,
    )


def observe(upstream: Upstream, decision: Decision, record: ExchangeRecord) -> None:
    """Learn from one finished exchange that ended on ``decision.backend``."""
    usage = record.usage
    cached = None if usage is None else usage.cached_tokens
    if cached is not None:
        upstream.correct(decision.backend, decision.holding, cached)
    if not record.stream or record.first_chunk_s is None or record.forwarded_s is None or record.status != 200:
        return
    ahead = decision.ahead
    own_tokens = ahead.own_tokens if usage is None or cached is None else max(0, usage.prompt_tokens - cached)
    upstream.learn_pace(
        decision.backend,
        ahead.queued_tokens + own_tokens,
        ahead.queued_patches + ahead.own_patches,
        record.first_chunk_s - record.forwarded_s,
    )
