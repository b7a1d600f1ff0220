"""Outliers against the fleet; time by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.types import BackendName, RequestCost
from gateway.upstream.outliers import OutlierRules, Outliers, Why, expected_s

NAMES = tuple(BackendName(name) for name in "abcdefgh")
RULES = OutlierRules(volume=10)
NOBODY: frozenset[BackendName] = frozenset()


def met(outliers: Outliers, name: BackendName, good: int, bad: int = 0, seconds: float | None = None) -> None:
    for _ in range(good):
        outliers.answered(name, 0.0)
        if seconds is not None:
            outliers.took(name, 0.0, seconds, 0.1)
    for _ in range(bad):
        outliers.failed(name, 0.0)


def swept(outliers: Outliers, names: Sequence[BackendName], now_s: float = 10.0) -> list[tuple[str, Why, float]]:
    return [(one.name, one.why, one.until_s) for one in outliers.sweep(now_s, [names], frozenset(names), NOBODY)]


def test_of_two_the_one_that_fails_is_ejected_and_longer_each_time() -> None:
    outliers = Outliers(OutlierRules(volume=10, base_s=30.0, limit_s=70.0))
    for now_s, until_s in ((10.0, 40.0), (50.0, 110.0), (120.0, 190.0)):
        assert outliers.is_due(now_s)
        met(outliers, NAMES[0], 20)
        met(outliers, NAMES[1], 5, 15)
        assert swept(outliers, NAMES[:2], now_s) == [("b", Why.FAILURES, until_s)]
        assert not outliers.is_due(now_s)
    assert outliers.counts == {("b", Why.FAILURES): 3}


def test_a_good_while_shortens_the_next_ejection() -> None:
    outliers = Outliers(RULES)
    for now_s, bad, expected in ((10.0, 20, [40.0]), (50.0, 0, []), (60.0, 20, [90.0])):
        met(outliers, NAMES[0], 20)
        met(outliers, NAMES[1], 20 - bad, bad)
        assert [until_s for _, _, until_s in swept(outliers, NAMES[:2], now_s)] == expected


def test_when_all_fail_alike_nobody_is_an_outlier() -> None:
    outliers = Outliers(RULES)
    for name in NAMES[:3]:
        met(outliers, name, 5, 15)
    assert swept(outliers, NAMES[:3]) == []


def test_little_traffic_judges_nobody_until_it_is_enough() -> None:
    outliers = Outliers(RULES)
    for number in range(2):
        met(outliers, NAMES[0], 5)
        met(outliers, NAMES[1], 0, 5)
        assert len(swept(outliers, NAMES[:2], 10.0 * (number + 1))) == number


def test_old_news_is_forgotten() -> None:
    outliers = Outliers(RULES)
    met(outliers, NAMES[0], 20)
    met(outliers, NAMES[1], 0, 5)
    swept(outliers, NAMES[:2], 60.0)
    met(outliers, NAMES[0], 20)
    met(outliers, NAMES[1], 0, 5)
    assert swept(outliers, NAMES[:2], 70.0) == []
    met(outliers, NAMES[1], 0, 10)
    outliers.forget(NAMES[1])
    assert swept(outliers, NAMES[:2], 80.0) == []


def test_five_are_compared_by_their_spread() -> None:
    outliers = Outliers(RULES)
    for name in NAMES[:5]:
        met(outliers, name, 100)
    met(outliers, NAMES[5], 70, 30)
    assert swept(outliers, NAMES[:6]) == [("f", Why.SUCCESS_RATE, 40.0)]


def test_a_hair_below_the_others_is_no_outlier() -> None:
    outliers = Outliers(RULES)
    for name in NAMES[:7]:
        met(outliers, name, 100)
    met(outliers, NAMES[7], 98, 2)
    assert swept(outliers, NAMES) == []


def test_late_against_what_its_requests_should_take() -> None:
    outliers = Outliers(RULES)
    for name in NAMES[:3]:
        met(outliers, name, 20, seconds=0.1)
    met(outliers, NAMES[3], 20, seconds=2.0)
    assert swept(outliers, NAMES[:4]) == [("d", Why.LATENCY, 40.0)]


@pytest.mark.parametrize("rules", [OutlierRules(volume=10, latency_factor=None), OutlierRules(volume=10, share=0.0)])
def test_what_is_switched_off(rules: OutlierRules) -> None:
    outliers = Outliers(rules)
    met(outliers, NAMES[0], 20, seconds=0.1)
    met(outliers, NAMES[1], 20, seconds=9.0)
    assert swept(outliers, NAMES[:2]) == []


def test_whose_requests_are_large_is_not_late() -> None:
    outliers = Outliers(RULES)
    small, large = (expected_s(RequestCost(tokens, 10, 0), streamed=True) for tokens in (100, 50_000))
    assert large > 50 * small
    for _ in range(20):
        for name, usual_s in ((NAMES[0], small), (NAMES[1], large)):
            outliers.answered(name, 0.0)
            outliers.took(name, 0.0, usual_s, usual_s)
    assert swept(outliers, NAMES[:2]) == []


def test_what_is_lost_half_way_counts_once() -> None:
    outliers = Outliers(RULES)
    met(outliers, NAMES[0], 20)
    met(outliers, NAMES[1], 10)
    for _ in range(10):
        outliers.failed(NAMES[1], 0.0, late=True)
    assert swept(outliers, NAMES[:2]) == [("b", Why.FAILURES, 40.0)]


def test_an_answer_that_is_no_stream_may_take_its_output_too() -> None:
    cost = RequestCost(100, 100, 0)
    assert expected_s(cost, streamed=False) > expected_s(cost, streamed=True)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=8),
    st.sets(st.integers(0, 7)),
    st.floats(0, 1),
)
def test_a_bounded_share_and_never_the_last(counts: list[tuple[int, int]], out: set[int], share: float) -> None:
    names = NAMES[: len(counts)]
    outliers = Outliers(OutlierRules(volume=10, share=share))
    for name, (good, bad) in zip(names, counts, strict=True):
        met(outliers, name, good, bad)
    ejected = frozenset(names[index] for index in out if index < len(names))
    usable = frozenset(names) - ejected
    found = outliers.sweep(10.0, [names], usable, ejected)
    assert {one.name for one in found} <= usable
    assert len(found) < max(1, len(usable))
    assert len(found) <= max(0, max(1, int(share * len(names))) - len(ejected))
