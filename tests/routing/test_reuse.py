"""How often content comes again, as one replica sees it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.reuse import Reuse, known_to_others

SHARES = st.floats(0, 1)


def told(*contents: int, limit: int = 100) -> Reuse:
    reuse = Reuse(limit)
    for number, content in enumerate(contents):
        reuse.met(content, number)
    return reuse


def test_homes_are_trusted_at_first_and_a_dozen_requests_of_new_content_overrule_that() -> None:
    assert known_to_others(Reuse().share, 49 / 50) > 0.99
    assert known_to_others(Reuse().share, 7 / 8) > 0.5
    assert known_to_others(told(*range(12)).share, 7 / 8) < 0.06
    assert known_to_others(told(*range(40)).share, 49 / 50) < 0.15


def test_it_rises_as_fast_as_content_comes_again() -> None:
    reuse = told(*range(300))
    for number in range(30):
        reuse.met(299, 1000 + number)
    assert reuse.share > 0.15
    assert told(*[1] * 50).share > 0.95


def test_a_request_that_is_sent_again_is_one_request() -> None:
    reuse = told(1)
    before = reuse.share
    reuse.met(1, 0)
    assert reuse.share == before


def test_what_an_engine_held_for_others_is_evidence() -> None:
    reuse = told(*range(40))
    before = reuse.share
    reuse.found()
    assert reuse.share > before + 0.02


def test_what_was_met_long_ago_is_new() -> None:
    assert told(1, 2, 3, 1, limit=2).share < told(1, 2, 3, 1, limit=3).share


@given(st.lists(st.one_of(st.integers(0, 5), st.none()), max_size=300))
def test_it_is_a_share(events: list[int | None]) -> None:
    reuse = Reuse(3)
    for number, event in enumerate(events):
        reuse.found() if event is None else reuse.met(event, number)
        assert 0 <= reuse.share <= 1


@given(SHARES, SHARES, SHARES)
def test_the_more_others_there_are_and_the_more_comes_again_the_likelier_they_know_it(
    share: float, fewer: float, more: float
) -> None:
    fewer, more = min(fewer, more), max(fewer, more)
    assert 0 <= known_to_others(share, fewer) <= known_to_others(share, more) <= 1
    assert known_to_others(fewer, share) <= known_to_others(more, share)


@pytest.mark.parametrize(
    ("share", "others", "likelihood"),
    [(0.0, 0.9, 0.0), (0.0, 1.0, 0.0), (0.5, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, 0.75, 0.875), (0.1, 1.0, 1.0)],
)
def test_each_of_the_others_has_met_it_as_likely_as_we(share: float, others: float, likelihood: float) -> None:
    assert known_to_others(share, others) == pytest.approx(likelihood)
