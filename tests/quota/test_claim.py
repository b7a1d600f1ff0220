from __future__ import annotations

from gateway.quota.claim import Charge, Claim, Hold, Unit, Used, used_costs_us
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.types import TenantId

A_MINUTE = Rate(60, 60)  # one unit a second: costs read as seconds
UNITS = (
    Unit.REQUESTS,
    Unit.TOKENS,
    Unit.IMAGES,
    Unit.MEGAPIXELS,
    Unit.IMAGE_TOKENS,
    Unit.PROMPT_TOKENS,
    Unit.OUTPUT_TOKENS,
    Unit.KV_TOKEN_SECONDS,
)
CLAIM = Claim(
    tenant=TenantId("acme"),
    holds=(Hold(Unit.KV_TOKENS, 50, 100), Hold(Unit.REQUESTS, 1)),
    charges=tuple(Charge(unit, 7, A_MINUTE) for unit in UNITS),
)


def seconds(used: Used | None, held_s: float) -> dict[Unit, float]:
    costs = used_costs_us(CLAIM, used, int(held_s * MICROSECONDS))
    return {unit: cost / MICROSECONDS for unit, cost in zip(UNITS, costs, strict=True)}


def test_what_was_used_replaces_what_was_estimated() -> None:
    assert seconds(Used(prompt_tokens=30, output_tokens=10, image_tokens=20), 2) == {
        Unit.REQUESTS: 7,
        Unit.TOKENS: 40,
        Unit.IMAGES: 7,
        Unit.MEGAPIXELS: 7,
        Unit.IMAGE_TOKENS: 20,
        Unit.PROMPT_TOKENS: 30,
        Unit.OUTPUT_TOKENS: 10,
        Unit.KV_TOKEN_SECONDS: 70,  # 30 all the time, 10 growing evenly: 35 on average
    }


def test_without_a_report_estimates_stand_and_only_time_is_known() -> None:
    assert seconds(None, 1.5) == dict.fromkeys(UNITS, 7) | {Unit.KV_TOKEN_SECONDS: 75}
    assert seconds(Used(30, 10), 0)[Unit.IMAGE_TOKENS] == 7


def test_rules_are_the_keys_of_the_policy() -> None:
    assert [hold.rule for hold in CLAIM.holds] == ["kv_tokens_in_flight", "requests_in_flight"]
    assert CLAIM.charges[4].rule == "rates.image_tokens"
    assert CLAIM.held(Unit.KV_TOKENS) == 50


def test_more_than_a_burst_is_never_possible() -> None:
    assert Charge(Unit.IMAGES, 60, A_MINUTE).is_possible
    assert not Charge(Unit.IMAGES, 61, A_MINUTE).is_possible
