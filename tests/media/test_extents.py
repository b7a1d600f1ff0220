from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from gateway.media.extents import ExtentMap

GRANULES = 40


class Allocations(RuleBasedStateMachine):
    """Whatever is taken, extended and given back: nothing overlaps, nothing is lost."""

    taken: Bundle[tuple[int, int]] = Bundle("taken")

    def __init__(self) -> None:
        super().__init__()
        self.map = ExtentMap(GRANULES)
        self.owned: set[int] = set()

    @rule(target=taken, count=st.integers(1, 12))
    def take(self, count: int) -> tuple[int, int]:
        free = set(range(GRANULES)) - self.owned
        first = self.map.take(count)
        if first is None:
            assert not any(set(range(at, at + count)) <= free for at in range(GRANULES))
            return (0, 0)
        granules = set(range(first, first + count))
        assert granules <= free
        self.owned |= granules
        return (first, count)

    @rule(target=taken, extent=consumes(taken), more=st.integers(1, 6))
    def extend(self, extent: tuple[int, int], more: int) -> tuple[int, int]:
        first, count = extent
        if count == 0:
            return extent
        behind = set(range(first + count, first + count + more))
        possible = behind <= set(range(GRANULES)) - self.owned
        assert self.map.extend(first, count, more) == possible
        if not possible:
            return extent
        self.owned |= behind
        return (first, count + more)

    @rule(extent=consumes(taken))
    def give(self, extent: tuple[int, int]) -> None:
        first, count = extent
        if count:
            self.map.give(first, count)
            self.owned -= set(range(first, first + count))

    @rule()
    def start_period(self) -> None:
        self.map.start_period()

    @rule(limit=st.integers(1, 8))
    def reclaim(self, limit: int) -> None:
        found = self.map.reclaim(limit)
        if found is not None:
            first, count = found
            assert 0 < count <= limit
            assert not self.owned & set(range(first, first + count))

    @invariant()
    def the_count_is_right(self) -> None:
        assert self.map.in_use == len(self.owned)


TestAllocations = Allocations.TestCase


def test_the_smallest_range_that_fits_is_used_from_its_low_end() -> None:
    extents = ExtentMap(20)
    first, second, third = extents.take(5), extents.take(1), extents.take(2)
    extents.take(1)
    assert (first, second, third) == (0, 5, 6)
    extents.give(0, 5)
    extents.give(6, 2)
    assert extents.take(2) == 6
    assert extents.take(2) == 0


@given(st.permutations(range(6)))
def test_given_back_in_any_order_it_is_whole_again(order: list[int]) -> None:
    extents = ExtentMap(12)
    for _ in range(6):
        extents.take(2)
    for at in order:
        extents.give(at * 2, 2)
    assert extents.take(12) == 0


def test_giving_back_twice_is_a_bug_that_shows() -> None:
    extents = ExtentMap(8)
    extents.take(4)
    extents.give(0, 2)
    with pytest.raises(ValueError, match="twice"):
        extents.give(1, 1)
    with pytest.raises(ValueError, match="twice"):
        extents.give(0, 2)


def test_only_what_a_whole_period_left_unused_is_reclaimed() -> None:
    extents = ExtentMap(100)
    extents.take(60)
    extents.give(0, 60)
    assert extents.reclaim(10) is None
    extents.start_period()
    extents.take(5)
    assert extents.reclaim(40) == (20, 40)
    assert extents.reclaim(40) == (5, 15)
    assert extents.reclaim(40) is None
