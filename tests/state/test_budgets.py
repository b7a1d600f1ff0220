from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import (
    BackendsFull,
    Exhausted,
    InFlightExhausted,
    KvBudgetExhausted,
    LimitExceeded,
    RateExceeded,
    TooManyTokens,
)
from gateway.ports import Budgets
from gateway.quota.claim import Charge, Unit, Used
from gateway.quota.gcra import Rate
from gateway.quota.standing import Standing, rate_headers
from gateway.state.reservation import LocalReservation
from gateway.types import TenantId
from tests.state.setups import A, B, Setup, claim, images, queued, until


def test_it_fits_the_port() -> None:
    port: Budgets = Setup().budgets
    assert port.inflight_kv_tokens(A) == 0


async def test_without_a_limit_everything_fits_and_is_accounted() -> None:
    setup = Setup()
    reservations = [await setup.budgets.reserve(claim(A, 10**9, None)) for _ in range(3)]
    assert setup.in_flight(A) == 3 * 10**9
    for reservation in reservations:
        reservation.release()
    assert setup.in_flight(A) == 0


async def test_ending_twice_gives_back_once() -> None:
    setup = Setup()
    first, second = await setup.budgets.reserve(claim(A, 60)), await setup.budgets.reserve(claim(A, 40))
    first.settle(Used(50, 5))
    first.release()
    first.settle(None)
    assert setup.in_flight(A) == 40
    second.release()


async def test_what_could_never_fit_is_the_requests_own_fault() -> None:
    setup = Setup()
    with pytest.raises(TooManyTokens) as caught:
        await setup.budgets.reserve(claim(A, 101, 100, 10))
    assert (caught.value.rule, caught.value.status) == ("kv_tokens_in_flight", 400)
    assert caught.value.message == "The request may need 101 KV tokens, more than the whole budget of 100."
    images = Charge(Unit.IMAGES, 11, Rate(600, 60, burst=10))
    with pytest.raises(LimitExceeded) as refused:
        await setup.budgets.reserve(claim(A, 1, charges=(images,)))
    assert (refused.value.rule, refused.value.status) == ("rates.images", 400)
    assert refused.value.message == "The request has 11 images; no more than 10 may come at once."
    assert (setup.budgets.waiting_count(), setup.in_flight(A)) == (0, 0)


async def test_a_release_lets_the_next_start_in_order() -> None:
    setup = Setup()
    holder = await setup.budgets.reserve(claim(A, 100, 100, 10))
    order: list[str] = []

    async def take(name: str) -> LocalReservation:
        reservation = await setup.budgets.reserve(claim(A, 60, 100, 10))
        order.append(name)
        return reservation

    first, second = asyncio.create_task(take("first")), asyncio.create_task(take("second"))
    await queued(setup, A, 2)
    holder.release()
    (await first).release()
    (await second).release()
    assert order == ["first", "second"]
    assert setup.in_flight(A) == 0


async def test_another_tenant_does_not_wait_behind_a_full_one() -> None:
    setup = Setup()
    await setup.budgets.reserve(claim(A, 100))
    waiting = asyncio.create_task(setup.budgets.reserve(claim(A, 1, 100, 10)))
    await queued(setup, A, 1)
    (await setup.budgets.reserve(claim(B, 100))).release()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_without_patience_a_full_budget_is_refused_with_numbers_and_a_time() -> None:
    setup = Setup()
    held = await setup.budgets.reserve(claim(A, 100))
    setup.clock.seconds += 4
    held.release()
    await setup.budgets.reserve(claim(A, 80))
    with pytest.raises(KvBudgetExhausted) as caught:
        await setup.budgets.reserve(claim(A, 60))
    assert caught.value.message == "The request may need 60 KV tokens; 80 of 100 are in flight."
    assert caught.value.retry_after_s == pytest.approx(2)  # 40 tokens of 80 that are held for about 4 s
    assert setup.budgets.waiting_count() == 0


async def test_what_would_wait_too_long_is_refused_at_once() -> None:
    setup = Setup()
    held = await setup.budgets.reserve(claim(A, 100))
    setup.clock.seconds += 30
    held.release()
    await setup.budgets.reserve(claim(A, 100))
    with pytest.raises(KvBudgetExhausted) as caught:
        await setup.budgets.reserve(claim(A, 100, 100, 5))
    assert caught.value.retry_after_s == 30


async def test_a_wait_ends_with_its_timeout_and_leaves_nothing() -> None:
    setup = Setup()
    held = await setup.budgets.reserve(claim(A, 100))
    with pytest.raises(KvBudgetExhausted) as caught:
        await setup.budgets.reserve(claim(A, 1, 100, 0.01))
    assert caught.value.retry_after_s == 1
    assert setup.budgets.waiting_count() == 0
    held.release()
    assert setup.in_flight(A) == 0


async def test_a_cancelled_waiter_leaves_nothing_and_lets_others_pass() -> None:
    setup = Setup()
    held = await setup.budgets.reserve(claim(A, 50))
    large = asyncio.create_task(setup.budgets.reserve(claim(A, 90, 100, 10)))
    await queued(setup, A, 1)
    small = asyncio.create_task(setup.budgets.reserve(claim(A, 50, 100, 10)))
    await queued(setup, A, 2)
    large.cancel()
    await asyncio.gather(large, return_exceptions=True)
    (await small).release()
    held.release()
    assert (setup.in_flight(A), setup.budgets.waiting_count()) == (0, 0)


async def test_a_grant_that_meets_a_cancellation_is_given_back() -> None:
    setup = Setup()
    held = await setup.budgets.reserve(claim(A, 100))
    waiting = asyncio.create_task(setup.budgets.reserve(claim(A, 70, 100, 10)))
    await queued(setup, A, 1)
    (waiter,) = setup.budgets._waiters.values()
    held.release()
    await until(waiter.granted.done)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (setup.in_flight(A), setup.budgets.waiting_count()) == (0, 0)


async def test_requests_in_flight_are_limited_too() -> None:
    setup = Setup()
    await setup.budgets.reserve(claim(A, 1, requests=1))
    with pytest.raises(InFlightExhausted, match=r"1 of 1 requests are in flight") as caught:
        await setup.budgets.reserve(claim(A, 1, requests=1))
    assert caught.value.rule == "requests_in_flight"


async def test_a_rate_refuses_with_its_exact_wait_and_tells_the_standing() -> None:
    setup = Setup()
    first = await setup.budgets.reserve(claim(A, 1, charges=images(8)))
    assert rate_headers(first.standing, "openai_chat") == [
        ("x-ratelimit-limit-images", "10"),
        ("x-ratelimit-remaining-images", "2"),
        ("x-ratelimit-reset-images", "48s"),
    ]
    with pytest.raises(RateExceeded) as caught:
        await setup.budgets.reserve(claim(A, 1, patience_s=5, charges=images(5)))
    error = caught.value
    assert error.message == "The rate of 10 images per minute is used up for now; this request has 5."
    assert (error.rule, error.status, error.retry_after_s) == ("rates.images", 429, 18)
    assert isinstance(error.standing, Standing)
    assert error.standing.lines() == first.standing.lines()
    first.release()  # a failed request counts all the same
    setup.clock.seconds += 18
    await setup.budgets.reserve(claim(A, 1, charges=images(5)))


async def test_a_rate_that_drains_in_time_is_waited_for_in_order() -> None:
    setup = Setup()
    await setup.budgets.reserve(claim(A, 1, charges=images(10)))
    waiting = [
        asyncio.create_task(setup.budgets.reserve(claim(A, 1, patience_s=20, charges=images(1)))) for _ in range(2)
    ]
    await queued(setup, A, 2)
    with pytest.raises(RateExceeded) as caught:
        await setup.budgets.reserve(claim(A, 1, patience_s=20, charges=images(2)))
    assert caught.value.retry_after_s == 24  # two images wait before these two, six seconds each
    setup.clock.seconds += 12
    await asyncio.gather(*waiting)
    assert setup.budgets.waiting_count() == 0


async def test_settling_corrects_what_was_charged() -> None:
    setup = Setup()
    tokens = (Charge(Unit.TOKENS, 900, Rate(1_000, 60)), Charge(Unit.KV_TOKEN_SECONDS, 0, Rate(100, 60)))
    first = await setup.budgets.reserve(claim(A, 50, charges=tokens))
    setup.clock.seconds += 1
    first.settle(Used(prompt_tokens=80, output_tokens=40))
    second = await setup.budgets.reserve(claim(A, 50, charges=(Charge(Unit.TOKENS, 880, Rate(1_000, 60)),)))
    assert rate_headers(second.standing, "openai_chat")[1] == ("x-ratelimit-remaining-tokens", "16")


async def test_a_debt_of_kv_token_seconds_is_in_the_way_of_the_next() -> None:
    setup = Setup()
    seconds = (Charge(Unit.KV_TOKEN_SECONDS, 0, Rate(100, 60)),)
    first = await setup.budgets.reserve(claim(A, 50, charges=seconds))
    setup.clock.seconds += 4
    first.settle(None)  # 50 tokens for 4 s: twice the whole minute's
    with pytest.raises(RateExceeded) as caught:
        await setup.budgets.reserve(claim(A, 1, charges=seconds))
    assert caught.value.message == "The rate of 100 KV token-seconds per minute is used up for now."
    assert caught.value.retry_after_s == 60


async def test_shadow_mode_refuses_nothing_and_tells_what_it_would_have() -> None:
    setup = Setup()
    held = await setup.budgets.reserve(claim(A, 80, shadow=True))
    too_many = await setup.budgets.reserve(claim(A, 40, patience_s=10, shadow=True))
    never = await setup.budgets.reserve(claim(A, 101, shadow=True))
    rated = await setup.budgets.reserve(claim(A, 1, charges=images(10), shadow=True))
    over = await setup.budgets.reserve(claim(A, 1, charges=images(1), shadow=True))
    codes = [each.finding and each.finding.code for each in (held, too_many, never, rated, over)]
    assert codes == [None, "kv_budget_exhausted", "too_many_tokens", None, "rate_limit_exceeded"]
    assert setup.store.in_flight(A, Unit.KV_TOKENS) == 81  # what would have been refused uses up nothing
    assert setup.budgets.inflight_kv_tokens(A) == 223
    for each in (held, too_many, never, rated, over):
        each.release()
    assert setup.in_flight(A) == 0


async def test_common_room_is_shared_fairly() -> None:
    setup = Setup(room=100)
    held = await setup.budgets.reserve(claim(A, 100, None))
    order: list[TenantId] = []

    async def take(tenant: TenantId) -> None:
        reservation = await setup.budgets.reserve(claim(tenant, 100, None, 10))
        order.append(tenant)
        reservation.release()

    tasks = [asyncio.create_task(take(A)) for _ in range(5)]
    await queued(setup, A, 5)
    tasks.append(asyncio.create_task(take(B)))
    await queued(setup, B, 1)
    held.release()
    await asyncio.gather(*tasks)
    assert B in order[:2]
    assert setup.in_flight(A) + setup.in_flight(B) == 0


async def test_a_large_request_that_lacks_common_room_is_not_overtaken_for_ever() -> None:
    setup = Setup(room=100)
    held = await setup.budgets.reserve(claim(B, 60, None))
    large = asyncio.create_task(setup.budgets.reserve(claim(A, 100, None, 10)))
    await queued(setup, A, 1)
    small = asyncio.create_task(setup.budgets.reserve(claim(B, 10, None, 10)))
    await queued(setup, B, 1)
    held.release()
    (await large).release()
    (await small).release()


async def test_room_that_appears_without_a_release_is_seen() -> None:
    setup = Setup(room=0)
    waiting = asyncio.create_task(setup.budgets.reserve(claim(A, 50, None, 10)))
    await queued(setup, A, 1)
    setup.room = 50
    (await waiting).release()


async def test_common_room_that_would_take_too_long_is_refused() -> None:
    setup = Setup(room=100)
    held = await setup.budgets.reserve(claim(A, 100, None))
    setup.clock.seconds += 40
    held.release()
    await setup.budgets.reserve(claim(A, 100, None))
    with pytest.raises(BackendsFull) as caught:
        await setup.budgets.reserve(claim(B, 100, None, 10))
    assert (caught.value.status, caught.value.rule, caught.value.retry_after_s) == (503, "backend_kv", 40)
    with pytest.raises(BackendsFull):
        await setup.budgets.reserve(claim(B, 100, None, 0))


async def test_a_small_request_is_not_refused_for_another_tenants_backlog() -> None:
    """Its own share of the line is short, however long the others' is."""
    setup = Setup(room=100)
    held = await setup.budgets.reserve(claim(A, 100, None))
    setup.clock.seconds += 1
    held.release()
    held = await setup.budgets.reserve(claim(A, 100, None))
    flood = [asyncio.create_task(setup.budgets.reserve(claim(A, 100, None, 100))) for _ in range(50)]
    await queued(setup, A, 50)
    quiet = asyncio.create_task(setup.budgets.reserve(claim(B, 100, None, 3)))
    await queued(setup, B, 1)
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    held.release()
    (await quiet).release()


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 60), st.integers(0, 3), st.booleans()), max_size=25),
    st.sampled_from([None, 80]),
)
def test_no_history_exceeds_a_limit_and_every_history_ends_at_zero(
    wishes: list[tuple[TenantId, int, int, bool]], room: int | None
) -> None:
    async def history() -> None:
        setup = Setup(room=room)

        async def live(tenant: TenantId, tokens: int, turns: int) -> None:
            reservation = await setup.budgets.reserve(claim(tenant, tokens, 60, 10))
            try:
                for _ in range(turns):
                    inflight = setup.in_flight(A), setup.in_flight(B)
                    assert max(inflight) <= 60
                    assert room is None or sum(inflight) <= room
                    await asyncio.sleep(0)
            finally:
                reservation.release()

        tasks = [asyncio.create_task(live(tenant, tokens, turns)) for tenant, tokens, turns, _ in wishes]
        await asyncio.sleep(0)
        for task, (*_, cancelled) in zip(tasks, wishes, strict=True):
            if cancelled:
                task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        unforeseen = [
            result for result in results if isinstance(result, Exception) and not isinstance(result, Exhausted)
        ]
        assert unforeseen == []
        assert [setup.in_flight(tenant) + setup.budgets.waiting_count(tenant) for tenant in (A, B)] == [0, 0]

    asyncio.run(history())
