"""Budgets as they stand in Redis against what the answers say: to the microsecond of the buckets' own arithmetic.

A bucket that never runs dry meanwhile is a sum: its theoretical arrival time grows by the cost of each request and by
nothing else. So it is opened once enough was charged, and at the end must stand where all costs together put it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.quota.gcra import MICROSECONDS, Rate, cost_us
from tests.e2e.processes import until
from tests.rollout.deck import Kind
from tests.rollout.load import Outcome
from tests.state.redis_server import RedisServer

DAY_S = 86_400
TOKENS, REQUESTS = Rate(2_000_000, DAY_S), Rate(50_000, DAY_S)  # as in site.RATES
_KEYS = "vlmgw:1:{default}:"


@dataclass(frozen=True, slots=True)
class Standing:
    """Arrival times in microseconds, and the server's clock."""

    tokens_us: int
    requests_us: int
    now_us: int


def standing(redis: RedisServer) -> Standing:
    """How the buckets stand now."""
    rates = redis.hash(f"{_KEYS}rates")
    seconds, fraction = (int(line) for line in redis.ask("TIME").decode().split("\r\n")[1:-1] if line[0] != "$")
    now_us = seconds * MICROSECONDS + fraction
    return Standing(int(rates[f"tokens/{DAY_S}"]), int(rates[f"requests/{DAY_S}"]), now_us)


def settled(redis: RedisServer) -> dict[str, int]:
    """What is held once all have ended: nothing, after the ends that are still on their way."""

    def held() -> dict[str, int]:
        return {name: len(redis.hash(f"{_KEYS}{name}")) for name in ("held", "sums")}

    until(lambda: not any(held().values()), "nothing is reserved")
    return held()


def differences(before: Standing, after: Standing, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Charged in Redis against what the answers cost, in units of each rate."""
    assert min(after.tokens_us, after.requests_us) > after.now_us, "the buckets ran dry: not a sum any more"
    # What is not read is charged as a request alone.
    tokens_us = sum(cost_us(each.tokens, TOKENS) for each in outcomes if each.ask.kind is not Kind.SOUND)
    requests_us = len(outcomes) * cost_us(1, REQUESTS)
    per_token_us, per_request_us = cost_us(1, TOKENS), cost_us(1, REQUESTS)
    return {
        "tokens_answered": sum(each.tokens for each in outcomes),
        "tokens_charged": round((after.tokens_us - before.tokens_us) / per_token_us, 3),
        "tokens_difference_us": after.tokens_us - before.tokens_us - tokens_us,
        "requests_answered": len(outcomes),
        "requests_charged": round((after.requests_us - before.requests_us) / per_request_us, 3),
        "requests_difference_us": after.requests_us - before.requests_us - requests_us,
    }
