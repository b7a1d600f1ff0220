"""Accounts: every sum returns to nothing, whatever order the ways out are taken in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.types import RequestCost
from gateway.upstream.accounts import RECENT_S, Load, OpenAccount


def sums(load: Load) -> tuple[int, int, int, int]:
    return load.requests, load.kv_tokens, load.prefill_tokens, load.encode_patches


def test_an_answer_ends_the_prefill_and_closing_the_rest() -> None:
    changes: list[None] = []
    load = Load(lambda: changes.append(None))
    account = load.open(RequestCost(prompt_tokens=100, output_tokens=20, encode_patches=400))
    assert sums(load) == (1, 120, 100, 400)
    account.answered()
    account.answered()
    assert sums(load) == (1, 120, 0, 0)
    account.close()
    account.close()
    account.answered()
    assert sums(load) == (0, 0, 0, 0)
    assert len(changes) == 3


@given(
    st.lists(st.builds(RequestCost, st.integers(0, 999), st.integers(0, 999), st.integers(0, 999)), max_size=10),
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=40),
)
def test_sums_are_never_negative_and_end_at_zero(costs: list[RequestCost], steps: list[tuple[int, bool]]) -> None:
    load = Load(lambda: None)
    accounts: list[OpenAccount] = [load.open(cost) for cost in costs]
    for index, closes in steps:
        if index < len(accounts):
            if closes:
                accounts[index].close()
            else:
                accounts[index].answered()
        assert min(sums(load)) >= 0
    for account in accounts:
        account.close()
    assert sums(load) == (0, 0, 0, 0)


def test_what_is_cached_there_is_not_ahead_of_others() -> None:
    load = Load(lambda: None)
    load.open(RequestCost(100, 20, 400, cached_tokens=60))
    assert sums(load) == (1, 120, 40, 400)


def test_an_answer_in_one_piece_is_past_its_prefill_when_it_should_be() -> None:
    load = Load(lambda: None)
    first = load.open(RequestCost(100, 20, 0, first_token_s=2.0), now_s=10.0)
    load.open(RequestCost(7, 0, 0, first_token_s=0.1), now_s=10.0)
    load.open(RequestCost(5, 0, 0), now_s=10.0)
    load.advance(11.0)
    assert load.prefill_tokens == 105
    load.advance(15.0)
    assert (load.prefill_tokens, load.requests) == (5, 3)
    first.answered()
    first.close()
    assert (load.prefill_tokens, load.requests) == (5, 2)


def test_recent_work_fades() -> None:
    load = Load(lambda: None)
    load.open(RequestCost(100, 0, 0), now_s=0.0).close()
    at_once = load.recent_work_tokens
    load.advance(RECENT_S)
    assert 0.36 < load.recent_work_tokens / at_once < 0.37


def test_the_last_one_out_is_told() -> None:
    load, told = Load(lambda: None), [0]
    first, second = (load.open(RequestCost(1, 1, 0)) for _ in range(2))

    def idle() -> None:
        told[0] += 1

    load.when_idle(idle)
    first.close()
    assert told == [0]
    second.close()
    assert told == [1]
    load.open(RequestCost(1, 1, 0)).close()
    assert told == [1], "told once"
    load.when_idle(idle)
    assert told == [2], "at once where there is none"
    third = load.open(RequestCost(1, 1, 0))
    load.when_idle(idle)
    load.when_idle(None)
    third.close()
    assert told == [2], "taken back"
