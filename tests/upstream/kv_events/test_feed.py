from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.routing.blocks.index import BlockIndex
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import TokenPrompt
from gateway.upstream.kv_events.feed import END_OF_REPLAY, Feed, State
from tests.upstream.kv_events.publisher import CLEARED, packed, removed, stored

A, B, C = [1] * 9, [2] * 9, [3] * 9


def feed_of(*, can_replay: bool = True) -> Feed:
    return Feed(BlockIndex(1000, engine_names=False), with_tokens=True, can_replay=can_replay)


def held(feed: Feed, tokens: Sequence[int]) -> int | None:
    return PromptChains(TokenPrompt(array("Q", tokens))).held_tokens([feed.index], None, pads=False)


def answer(feed: Feed, messages: Sequence[tuple[int, bytes]], start: int | None) -> int:
    """Answer replays until none is asked for; how many that took."""
    rounds = 0
    while start is not None:
        rounds += 1
        assert rounds < 10
        asked, start = start, None
        for number, payload in [*(each for each in messages if each[0] >= asked), (END_OF_REPLAY, b"")]:
            start = feed.replayed(number, payload, 0.0)
            if start is not None:
                break
    return rounds


def test_a_start_hears_all_that_was_said() -> None:
    feed = feed_of()
    messages = [(0, packed(stored(A))), (1, packed(stored(B)))]
    assert not feed.fresh
    answer(feed, messages, feed.opened(0.0))
    assert (feed.fresh, feed.whole, held(feed, A), held(feed, B)) == (True, True, 8, 8)


def test_an_engine_that_said_nothing_yet_holds_nothing_and_that_is_known() -> None:
    feed = feed_of()
    answer(feed, [], feed.opened(0.0))
    assert (feed.fresh, feed.whole) == (True, True)
    assert feed.live(0, packed(stored(A)), 0.0) is None
    assert held(feed, A) == 8


def test_who_comes_late_knows_only_what_came_since() -> None:
    feed = feed_of()
    answer(feed, [(7, packed(stored(A)))], feed.opened(0.0))
    assert (feed.fresh, feed.whole, held(feed, A), feed.gaps) == (True, False, 8, 0)


def test_a_gap_is_filled_and_what_waits_meanwhile_follows_once() -> None:
    feed = feed_of()
    messages = [(0, packed(stored(A)))]
    answer(feed, messages, feed.opened(0.0))
    messages += [(1, packed(CLEARED)), (2, packed(stored(B))), (3, packed(stored(C)))]
    asked = feed.live(2, messages[2][1], 0.0)
    assert (asked, feed.fresh) == (0, False)
    assert feed.live(3, messages[3][1], 0.0) is None
    answer(feed, messages[:3], asked)
    assert (feed.fresh, feed.gaps, feed.whole) == (True, 1, True)
    assert (held(feed, A), held(feed, B), held(feed, C)) == (0, 8, 8)


def test_what_came_with_a_replay_already_is_no_restart() -> None:
    feed = feed_of()
    messages = [(0, packed(stored(A))), (1, packed(CLEARED))]
    answer(feed, messages, feed.opened(0.0))
    assert [feed.live(*message, 0.0) for message in messages] == [None, None]
    assert (held(feed, A), feed.restarts) == (0, 0)


def test_a_gap_that_nobody_can_fill_empties() -> None:
    feed = feed_of()
    answer(feed, [(0, packed(stored(A)))], feed.opened(0.0))
    kept = [(5, packed(stored(B)))]
    answer(feed, kept, feed.live(*kept[0], 0.0))
    assert (feed.fresh, feed.whole, held(feed, A), held(feed, B)) == (True, False, 0, 8)


def test_a_restart_is_seen_by_the_number_that_went_back() -> None:
    feed = feed_of()
    answer(feed, [(0, packed(stored(A))), (1, packed(stored(B)))], feed.opened(0.0))
    anew = (0, packed(stored(C)))
    assert feed.live(*anew, 0.0) is None
    assert (feed.restarts, feed.whole, held(feed, A), held(feed, C)) == (1, True, 0, 8)


def test_a_restart_in_silence_is_seen_when_the_connection_comes_back() -> None:
    feed = feed_of()
    answer(feed, [(number, packed(stored(A))) for number in range(3)], feed.opened(0.0))
    feed.closed()
    assert not feed.fresh
    answer(feed, [(0, packed(stored(B)))], feed.opened(0.0))
    assert (feed.fresh, feed.restarts, held(feed, A), held(feed, B)) == (True, 1, 0, 8)


def test_a_restart_that_has_said_as_much_already_is_told_by_its_clock() -> None:
    feed = feed_of()
    answer(feed, [(0, packed(stored(A))), (1, packed(stored(A)))], feed.opened(0.0))
    feed.closed()
    answer(feed, [(0, packed(stored(B))), (1, packed(stored(C))), (2, packed(stored(C)))], feed.opened(0.0))
    assert (feed.restarts, held(feed, A), held(feed, B), held(feed, C)) == (1, 0, 8, 8)


def test_a_lost_connection_to_the_same_publisher_costs_nothing() -> None:
    feed = feed_of()
    messages = [(0, packed(stored(A))), (1, packed(stored(B)))]
    answer(feed, messages, feed.opened(0.0))
    feed.closed()
    assert answer(feed, [*messages, (2, packed(removed(A, 1)))], feed.opened(0.0)) == 1
    assert (feed.fresh, feed.whole, feed.restarts, held(feed, A), held(feed, B)) == (True, True, 0, 4, 8)


def test_without_an_answer_in_time_it_goes_on_with_what_comes() -> None:
    feed = feed_of()
    feed.opened(0.0)
    feed.live(4, packed(stored(A)), 0.0)
    assert feed.gave_up(9.0) is None
    assert (feed.fresh, feed.whole, feed.failed_replays, held(feed, A)) == (True, False, 1, 8)


def test_a_publisher_that_keeps_nothing_is_not_asked_for_ever() -> None:
    feed = feed_of()
    answer(feed, [], feed.opened(0.0))
    feed.live(0, packed(stored(A)), 0.0)
    assert answer(feed, [], feed.live(3, packed(stored(B)), 0.0)) <= 3
    assert (feed.fresh, feed.whole, held(feed, A), held(feed, B)) == (True, False, 0, 8)


def test_without_replays_a_gap_empties_and_silence_is_not_believed() -> None:
    feed = feed_of(can_replay=False)
    feed.opened(0.0)
    assert not feed.fresh
    feed.live(0, packed(stored(A)), 0.0)
    assert (feed.fresh, feed.whole) == (True, True)
    feed.closed()
    feed.opened(0.0)
    assert not feed.fresh
    feed.live(1, packed(stored(B)), 0.0)
    assert (feed.fresh, held(feed, A), held(feed, B)) == (True, 8, 8)
    feed.live(4, packed(stored(C)), 0.0)
    assert (feed.gaps, feed.whole, held(feed, A), held(feed, C)) == (1, False, 0, 8)
    assert feed.verify(0.0) is None
    assert (feed.fresh, held(feed, C)) == (False, 0)


def test_what_waits_is_bounded() -> None:
    feed = feed_of()
    feed.opened(0.0)
    payload = packed(stored(A))
    for number in range(10_000):
        feed.live(number, payload, 0.0)
    assert len(feed._waiting) <= 4096


@given(st.binary(max_size=60))
def test_garbage_is_counted_and_changes_nothing(payload: bytes) -> None:
    feed = feed_of()
    answer(feed, [(0, packed(stored(A)))], feed.opened(0.0))
    before = feed.ignored
    feed.live(1, payload, 0.0)
    feed.live(1, packed({"type": "BlockStored", "block_hashes": [1], "token_ids": [-1] * 4, "block_size": 4}), 0.0)
    assert feed.ignored > before
    assert held(feed, A) == 8


EVENTS = st.lists(
    st.sampled_from([("store", A), ("store", B), ("store", C), ("cut", A), ("cut", B), ("clear", A)]), max_size=12
)


@given(EVENTS, st.integers(0, 2**12 - 1), st.integers(1, 12))
def test_whatever_is_lost_it_never_ends_up_with_another_state_than_the_publishers(
    said: list[tuple[str, list[int]]], lost: int, kept: int
) -> None:
    events: list[dict[str, Any]] = [
        stored(tokens) if what == "store" else removed(tokens, 1) if what == "cut" else CLEARED for what, tokens in said
    ]
    messages = [(number, packed(event)) for number, event in enumerate(events)]
    feed, truth = feed_of(), feed_of()
    answer(feed, [], feed.opened(0.0))
    answer(truth, messages, truth.opened(0.0))
    for number, payload in messages:
        if not lost >> number & 1:
            answer(feed, messages[max(0, number + 1 - kept) : number + 1], feed.live(number, payload, 0.0))
    if messages and lost >> (len(messages) - 1) & 1:
        return
    assert feed.state is State.FOLLOWING
    for tokens in (A, B, C):
        mine, real = held(feed, tokens), held(truth, tokens)
        assert mine is not None
        assert real is not None
        assert mine <= real
        assert mine == real or not feed.whole
