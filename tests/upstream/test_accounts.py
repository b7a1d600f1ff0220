"""Accounts: every sum returns to nothing, whatever order the ways out are taken in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.types import RequestCost
from gateway.upstream.accounts import Load, OpenAccount


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
