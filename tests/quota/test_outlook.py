from __future__ import annotations

import pytest

from gateway.quota.claim import Charge, Claim, Hold, Unit
from gateway.quota.gcra import MICROSECONDS, Rate
from gateway.quota.outlook import Outlook
from gateway.quota.store import Denied, Granted
from gateway.types import TenantId

RATE = Rate(10, 60)


def claim(kv_tokens: int, images: int = 0, limit: int | None = 100) -> Claim:
    charges = (Charge(Unit.IMAGES, images, RATE),) if images else ()
    return Claim(tenant=TenantId("a"), holds=(Hold(Unit.KV_TOKENS, kv_tokens, limit),), charges=charges)


def test_a_full_budget_drains_at_the_pace_that_was_seen() -> None:
    outlook = Outlook()
    outlook.opened(claim(100))
    outlook.closed(claim(100), 10 * MICROSECONDS)
    outlook.opened(claim(80))
    outlook.joined(claim(60))
    assert outlook.own_wait_s(claim(60), None, 0) == pytest.approx(40 / 80 * 10)
    shared = Denied(claim(60).holds[0], 0, 100, (), 0)
    assert outlook.own_wait_s(claim(60), shared, 0) == pytest.approx(60 / 100 * 10)
    outlook.left(claim(60))
    assert outlook.waiting[Unit.KV_TOKENS] == 0


def test_a_rates_wait_counts_those_before_and_the_stores_own_clock() -> None:
    outlook = Outlook()
    store_us = 1_790_000_000 * MICROSECONDS
    outlook.saw(claim(0, 10).charges, Granted((store_us + 60 * MICROSECONDS,), store_us), now_us=5 * MICROSECONDS)
    for _ in range(2):
        outlook.joined(claim(0, 1))
    assert outlook.own_wait_s(claim(0, 1), None, 5 * MICROSECONDS) == 12
    assert outlook.own_wait_s(claim(0, 1), None, 15 * MICROSECONDS) == 2
    (line,) = outlook.standing(claim(0, 1).charges, 11 * MICROSECONDS, 0.0).lines()
    assert (line.remaining, line.reset_us) == (1, 54 * MICROSECONDS)


def test_where_nothing_was_seen_nothing_is_known() -> None:
    outlook = Outlook()
    outlook.opened(claim(100))
    outlook.joined(claim(50))
    assert outlook.own_wait_s(claim(50), None, 0) is None
    assert outlook.own_wait_s(claim(50, limit=None), None, 0) is None
