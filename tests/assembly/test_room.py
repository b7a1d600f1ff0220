from __future__ import annotations

from dataclasses import replace

from gateway.assembly.room import room_on
from gateway.quota.claim import Claim, Hold, Unit
from gateway.types import BackendName, BackendView, EngineKind, TenantId

EMPTY = BackendView(BackendName("a"), "http://a", EngineKind.VLLM, models=("m",), kv_capacity_tokens=1_000)
FULL = replace(EMPTY, inflight_requests=2, inflight_kv_tokens=1_000)


def claim(pool: str | None = "m") -> Claim:
    return Claim(tenant=TenantId("t"), holds=(Hold(Unit.KV_TOKENS, 10),), pool=pool)


def asked(*views: BackendView, pool: str | None = "m", fill: float = 1.0) -> bool:
    has_room = room_on(lambda: views, fill)
    assert has_room is not None
    return has_room(claim(pool))


def test_one_backend_with_room_is_enough() -> None:
    assert asked(FULL, EMPTY)
    assert not asked(FULL, FULL)
    assert asked(FULL, fill=1.5)


def test_only_backends_that_serve_the_model_and_are_up_count() -> None:
    other = replace(EMPTY, models=("n",))
    assert not asked(FULL, other)
    assert asked(FULL, other, pool=None)
    assert asked(FULL, replace(EMPTY, models=()))
    assert not asked(FULL, replace(EMPTY, healthy=False), replace(EMPTY, draining=True))


def test_without_any_backend_nobody_waits_for_one() -> None:
    assert asked()
    assert asked(replace(FULL, healthy=False))
    assert asked(replace(FULL, models=("n",)))


def test_limits_hold_with_and_without_a_fill() -> None:
    busy = replace(EMPTY, inflight_requests=1, max_requests=1)
    for fill in (1.0, None):
        has_room = room_on(lambda: (busy,), fill, limited=True)
        assert has_room is not None
        assert not has_room(claim())
    without = room_on(lambda: (replace(FULL, max_requests=3),), None, limited=True)
    assert without is not None
    assert without(claim())
    assert room_on(lambda: (), None) is None


def test_a_claim_s_prompt_must_fit_beside_those_being_computed() -> None:
    view = replace(EMPTY, max_prefill_tokens=100, queued_prefill_tokens=60)
    has_room = room_on(lambda: (view,), None, limited=True)
    assert has_room is not None
    assert [has_room(claim()._replace(prompt_tokens=tokens)) for tokens in (40, 41)] == [True, False]
