from __future__ import annotations

from typing import Any

import pytest

from gateway.routing.ask import RouteAsk
from gateway.routing.decide import decide
from gateway.routing.filters.kv_headroom import FRESH_S, KV_HEADROOM, has_headroom
from gateway.routing.holding import Holding
from gateway.types import BackendName
from tests.routing.fields import asking, view

HALF = {"kv_capacity_tokens": 1_000, "inflight_requests": 1, "inflight_kv_tokens": 500}
FULL = HALF | {"inflight_kv_tokens": 950}
FRESH = {"scraped_age_s": 1.0, "engine_waiting": 0}


@pytest.mark.parametrize(
    ("facts", "kept"),
    [
        ({}, True),  # nobody knows its capacity
        (HALF | {"inflight_requests": 0, "inflight_kv_tokens": 0, "kv_capacity_tokens": 50}, True),  # alone
        (HALF, True),
        (FULL, False),
        (FULL | {"kv_use_ratio": 0.2, **FRESH}, True),  # reserved, not used
        (FULL | {"kv_use_ratio": 0.2, "queued_prefill_tokens": 750, **FRESH}, False),  # what was just sent counts
        (FULL | {"kv_use_ratio": 0.2, "scraped_age_s": FRESH_S + 1, "engine_waiting": 0}, False),
        (FULL | {"kv_use_ratio": 0.2, "scraped_age_s": 1.0, "engine_waiting": 3}, False),
        (HALF | {"kv_use_ratio": 0.97, "scraped_age_s": 1.0, "engine_waiting": 3}, False),  # full of others' requests
        (HALF | {"kv_use_ratio": 0.97, **FRESH}, True),
    ],
)
def test_room_by_account_and_by_report(facts: dict[str, Any], kept: bool) -> None:
    assert KV_HEADROOM.keeps(view("a", **facts), RouteAsk(kv_tokens=100)) is kept


def test_the_share_may_be_overdrawn_on_purpose() -> None:
    assert has_headroom(view("a", **FULL), 100, fill=1.5)
    assert not has_headroom(view("a", **HALF), 100, fill=0.5)


def test_a_full_backend_is_not_chosen_while_another_has_room_but_serves_when_none_has() -> None:
    full, other = view("a", **FULL), view("b", **HALF | {"inflight_requests": 30})
    ask = asking(images=(b"1" * 16,), kv_tokens=100)
    assert decide([full, other], ask, {BackendName("a"): Holding(1)}).backend == "b"
    decision = decide([full], ask, {BackendName("a"): Holding(1)})
    assert (decision.backend, "filter kv_headroom: none of 1, skipped" in decision.trail) == ("a", True)
