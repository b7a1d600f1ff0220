"""Who is compared, at which pace, within which bound."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.ask import Profile, RouteAsk
from gateway.routing.field import (
    ALL_OF,
    HOLDERS,
    HOMES,
    SAMPLE,
    bounded,
    field_of,
    others_share,
    shortlist,
    shortlist_passing,
    usual_pace,
    work_tokens,
)
from gateway.routing.hashing import ranked, spread
from gateway.routing.holding import Believed, Holding, RouteKey
from gateway.types import BackendName
from tests.routing.fields import asking, view

PROFILE = Profile()
IMAGE = b"0123456789abcdef"
ASK = asking((IMAGE,), 4000, prompt_tokens=1000, kv_tokens=2000)


def test_a_small_fleet_is_compared_whole() -> None:
    fleet = [view(f"b{number}") for number in range(ALL_OF)]
    assert shortlist(fleet, ASK, {}) is fleet


@given(st.integers(ALL_OF + 1, 300), st.text(max_size=5))
def test_of_a_large_one_holders_homes_and_a_sample(count: int, request_id: str) -> None:
    fleet = [view(f"b{number}") for number in range(count)]
    ask = asking((IMAGE,), 4000, request_id=request_id)
    holders = {fleet[number].name: Holding(1) for number in (3, count - 1)}
    listed = shortlist(fleet, ask, holders)
    names = {one.name for one in listed}
    assert names >= holders.keys() | {one.name for one in ranked(fleet, IMAGE)[:HOMES]}
    assert SAMPLE <= len(listed) <= SAMPLE + HOMES + HOLDERS
    assert [one for one in fleet if one.name in names] == list(listed)


@given(st.integers(ALL_OF + 1, 300), st.sets(st.integers(0, 299)), st.text(max_size=5))
def test_picked_before_the_filters_they_are_the_same_but_for_the_sample(
    count: int, bad: set[int], request_id: str
) -> None:
    fleet = [view(f"b{number}") for number in range(count)]
    good = [one for number, one in enumerate(fleet) if number not in bad]
    names = {one.name for one in good}
    ask = asking((IMAGE,), 4000, request_id=request_id)
    holders = {fleet[number].name: Holding(1) for number in (3, count - 1)}
    listed = shortlist_passing(fleet, ask, holders, lambda few: [one for one in few if one.name in names])
    if not bad:
        assert list(listed) == list(shortlist(fleet, ask, holders))
    if not listed:
        assert bad
        return
    found = {one.name for one in listed}
    assert found <= names
    assert found >= (holders.keys() & names) | {one.name for one in ranked(good, IMAGE)[:HOMES]}
    assert [one for one in fleet if one.name in found] == list(listed)


def test_who_was_not_observed_yet_has_the_usual_pace() -> None:
    fleet = [view("a", prefill_s_per_token=1e-3), view("b", prefill_s_per_token=3e-3), view("c")]
    usual = usual_pace(fleet, PROFILE)
    assert usual.prefill_s_per_token == pytest.approx(2e-3)
    assert usual.encode_s_per_patch == PROFILE.encode_s_per_patch
    assert list(field_of(fleet, RouteAsk(prompt_tokens=100), {}, PROFILE).work_s) == pytest.approx([0.1, 0.3, 0.2])


def test_who_had_much_lately_is_left_out_unless_it_holds_the_content() -> None:
    work = work_tokens(1000, 4000, 1000)
    fleet = [view("a", recent_work_tokens=4.0 * work), view("b"), view("c")]
    whole = field_of(fleet, ASK, {}, PROFILE)
    assert [one.name for one in bounded(whole).views] == ["b", "c"]
    held = field_of(fleet, ASK, {BackendName("a"): Holding(1, 4000, 1000)}, PROFILE)
    assert [one.name for one in bounded(held).views] == ["a", "b", "c"]
    part = field_of(fleet, ASK, {BackendName("a"): Holding(0, 0, 100)}, PROFILE)
    assert [one.name for one in bounded(part).views] == ["b", "c"]


def test_the_share_of_others_is_what_engines_have_in_hand_that_was_not_ours() -> None:
    ours = {"engine_running": 6, "engine_waiting": 2, "scraped_inflight_requests": 4}
    fleet = [view("a", **ours), view("b"), view("c", engine_running=9)]
    assert others_share(fleet) == pytest.approx(0.5)
    assert others_share([view("a")]) == 0.0


def test_among_replicas_the_home_may_run_ahead() -> None:
    facts = {"engine_running": 8, "scraped_inflight_requests": 1}
    fleet = [view(name, **facts) for name in "abc"]
    home = ranked(fleet, IMAGE)[0]
    work = work_tokens(1000, 4000, 1000)
    busy = [replace(one, recent_work_tokens=9.0 * work) if one is home else one for one in fleet]
    field = bounded(field_of(busy, ASK, {}, PROFILE))
    assert field.home is not None
    assert field.views[field.home].name == home.name
    alone = [replace(one, scraped_inflight_requests=8) for one in busy]
    assert home.name not in {one.name for one in bounded(field_of(alone, ASK, {}, PROFILE)).views}


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=9), st.integers(0, 5000))
def test_the_bound_leaves_somebody(recent: list[float], tokens: int) -> None:
    fleet = [view(f"b{number}", recent_work_tokens=each) for number, each in enumerate(recent)]
    field = bounded(field_of(fleet, RouteAsk(prompt_tokens=tokens, kv_tokens=tokens), {}, PROFILE))
    assert fleet[recent.index(min(recent))] in field.views
    assert field.home is None


def test_the_home_is_by_the_history_then_by_the_first_image() -> None:
    assert RouteKey().content is None
    assert ASK.key.content == spread(IMAGE)
    assert RouteKey((IMAGE,), home=5).content == 5


@pytest.mark.parametrize(("reuse", "likelihood"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_a_home_is_trusted_as_far_as_content_comes_again(reuse: float, likelihood: float) -> None:
    fleet = [view(name, engine_running=20, scraped_inflight_requests=10) for name in "ab"]
    field = field_of(fleet, ASK, Believed({}, reuse), PROFILE)
    assert field.likelihood == pytest.approx(likelihood)


def test_who_has_just_come_back_is_slower() -> None:
    fleet = [view("a", queued_prefill_tokens=100), view("b", queued_prefill_tokens=100, ramp=0.5)]
    field = field_of(fleet, RouteAsk(prompt_tokens=100), {}, Profile())
    assert field.queue_s[1] == pytest.approx(2 * field.queue_s[0])
    assert field.work_s[1] == pytest.approx(2 * field.work_s[0])
