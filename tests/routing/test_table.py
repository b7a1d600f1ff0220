"""The holders' table: as a dict of sets would have it, in a third of the memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.table import HolderTable

# Few contents and shared low bits, so that buckets are crowded.
CONTENTS = st.sampled_from([number << 40 | number % 3 for number in range(12)])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("use"), st.integers(0, 3), CONTENTS, st.integers(1, 9)),
        st.tuples(st.just("shrink"), st.integers(0, 3), st.just(0), st.integers(0, 30)),
        st.tuples(st.just("forget"), st.integers(0, 3), st.just(0), st.just(0)),
    ),
    max_size=80,
)


@given(STEPS)
def test_it_is_a_least_recently_used_list_per_owner(steps: list[tuple[str, int, int, int]]) -> None:
    table = HolderTable(1000)
    model: dict[int, dict[int, int]] = {owner: {} for owner in range(4)}
    for what, owner, content, weight in steps:
        held = model[owner]
        if what == "use":
            table.use(owner, content, weight)
            held[content] = held.pop(content, weight)
        elif what == "shrink":
            table.shrink(owner, weight)
            while sum(held.values()) > weight and len(held) > 1:
                del held[next(iter(held))]
        else:
            table.forget(owner)
            held.clear()
        assert len(table) == sum(len(each) for each in model.values())
        for one in range(4):
            assert table.weight_of(one) == sum(model[one].values())
    for content in {content for _, _, content, _ in steps}:
        expected = {owner for owner, held in model.items() if content in held}
        assert {owner for owner, _ in table.holders(content)} == expected
        assert {owner for owner in range(4) if table.holds(owner, content)} == expected


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1 << 63)), max_size=120))
def test_it_is_bounded_and_the_latest_stays(limit: int, uses: list[tuple[int, int]]) -> None:
    table = HolderTable(limit)
    for owner, content in uses:
        table.use(owner, content, 1)
        assert len(table) <= limit
        assert table.holds(owner, content)


def test_age_is_what_came_in_since() -> None:
    table = HolderTable(100)
    table.use(0, 1, 10, fresh_below=25)
    table.use(0, 2, 20, fresh_below=25)
    assert table.holders(1) == [(0, 20)]
    table.use(0, 2, 20, fresh_below=25)
    assert table.holders(1) == [(0, 20)], "using again what is still cached brings nothing in"
    table.use(0, 3, 10, fresh_below=25)
    table.use(0, 1, 10, fresh_below=25)
    assert (table.holders(1), table.holders(2), table.holders(3)) == ([(0, 0)], [(0, 20)], [(0, 10)])


def test_a_large_one_takes_some_forty_bytes_an_entry() -> None:
    table = HolderTable(40_000)
    for number in range(40_000):
        table.use(number % 8, number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF, 1000)
    assert len(table) == 40_000
    assert table.byte_count / len(table) <= 50


def test_it_needs_room_for_one() -> None:
    with pytest.raises(ValueError, match="entry_limit"):
        HolderTable(0)
