"""What one request asks of its tenant's budgets: what it holds while in flight, and what it is charged.

Decided here: the units, and what a request really used in each of them. Not decided here: limits (`policy`), estimates
(`models`), arithmetic over time (`gcra`), who waits for whom (`queue`).
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import NamedTuple, NewType

from gateway.quota.gcra import MICROSECONDS, Rate, cost_us
from gateway.types import TenantId
from gateway.types.per_request import per_request

# Unique among the open reservations of one process; a store shared by processes adds which process it is.
ReservationId = NewType("ReservationId", int)


class Unit(StrEnum):
    """What is counted. Megapixels are counted in pixels, KV token-seconds in whole ones."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    IMAGES = "images"
    MEGAPIXELS = "megapixels"
    IMAGE_TOKENS = "image_tokens"
    PROMPT_TOKENS = "prompt_tokens"
    OUTPUT_TOKENS = "output_tokens"
    KV_TOKEN_SECONDS = "kv_token_seconds"  # noqa: S105  # a unit, no password
    KV_TOKENS = "kv_tokens"
    KV_BYTES = "kv_bytes"

    __hash__ = str.__hash__  # an enumeration's own is written in Python, and every request looks up a dozen


class Priority(IntEnum):
    """Who goes first; within one class tenants share by weight."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


# Tuples by name, which are made in a third of the time that a frozen dataclass takes: every request makes several.
class Hold(NamedTuple):
    """Taken when the request starts, given back when it ends. ``limit`` None: counted, not limited."""

    unit: Unit
    amount: int
    limit: int | None = None

    @property
    def rule(self) -> str:
        """The key of the policy."""
        return f"{self.unit.value}_in_flight"


class Charge(NamedTuple):
    """Taken from a rate by estimate when the request starts, corrected when it ends.

    The bucket is (tenant, unit, period): two windows of one unit are two charges.
    """

    unit: Unit
    amount: int
    rate: Rate

    @property
    def rule(self) -> str:
        """The key of the policy."""
        return f"rates.{self.unit.value}"

    @property
    def cost_us(self) -> int:
        return cost_us(self.amount, self.rate)

    @property
    def is_possible(self) -> bool:
        """Whether an untouched bucket would admit it."""
        return self.cost_us <= self.rate.capacity_us


class Claim(NamedTuple):
    """One request before the budgets. ``cost`` is its share in fairness, in tokens; ``pool`` the model it is for.

    ``shadow``: nothing is refused and nobody waits; what would have been is told.
    """

    tenant: TenantId
    holds: tuple[Hold, ...]
    charges: tuple[Charge, ...] = ()
    queue_timeout_s: float = 0.0
    priority: Priority = Priority.NORMAL
    weight: float = 1.0
    cost: int = 0
    pool: str | None = None
    shadow: bool = False
    prompt_tokens: int = 0

    def held(self, unit: Unit) -> int:
        """What it holds of one unit."""
        for hold in self.holds:
            if hold.unit is unit:
                return hold.amount
        return 0


@per_request(frozen=True, slots=True)
class Used:
    """What the engine reported. ``image_tokens`` None: it did not say."""

    prompt_tokens: int
    output_tokens: int
    image_tokens: int | None = None


def used_costs_us(claim: Claim, used: Used | None, held_us: int) -> tuple[int, ...]:
    """What each charge of the claim should have been; without a report the estimate stands.

    KV token-seconds: the prompt is held all the time, the output grows evenly, so half of it is on average.
    """
    return tuple(
        charge.cost_us if (amount := _used_amount(charge, claim, used, held_us)) is None
        else cost_us(amount, charge.rate)
        for charge in claim.charges
    )  # fmt: skip


def _used_amount(charge: Charge, claim: Claim, used: Used | None, held_us: int) -> int | None:
    if charge.unit is Unit.KV_TOKEN_SECONDS:
        doubled = 2 * claim.held(Unit.KV_TOKENS) if used is None else 2 * used.prompt_tokens + used.output_tokens
        return doubled * held_us // (2 * MICROSECONDS)
    if used is None:
        return None
    match charge.unit:
        case Unit.PROMPT_TOKENS:
            return used.prompt_tokens
        case Unit.OUTPUT_TOKENS:
            return used.output_tokens
        case Unit.TOKENS:
            return used.prompt_tokens + used.output_tokens
        case Unit.IMAGE_TOKENS:
            return used.image_tokens
        case _:
            return None
