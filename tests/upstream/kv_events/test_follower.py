"""Real sockets: the thread against publishers that behave as vLLM's does."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from gateway.routing.blocks.index import BlockIndex
from gateway.routing.blocks.lookup import PromptChains
from gateway.routing.blocks.prompt import TokenPrompt
from gateway.upstream.kv_events.feed import Feed
from gateway.upstream.kv_events.follower import Follower, Line
from tests.ports import free_port
from tests.upstream.kv_events.publisher import CLEARED, Publisher, stored

A, B, C = [1] * 9, [2] * 9, [3] * 9
TOPIC = b"kv"


def until(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < give_up_s, "it did not come about"
        time.sleep(0.002)


def line_to(endpoint: str | None, replay_endpoint: str | None, topic: bytes = TOPIC) -> Line:
    feed = Feed(BlockIndex(1000, engine_names=False), with_tokens=True, can_replay=replay_endpoint is not None)
    return Line(feed, endpoint, replay_endpoint, topic, 0)


def held(line: Line, tokens: Sequence[int]) -> int | None:
    return PromptChains(TokenPrompt(array("Q", tokens))).held_tokens([line.feed.index], None, pads=False)


@contextmanager
def following(*lines: Line, listen: str | None = None, deadline_s: float = 10.0) -> Iterator[Follower]:
    follower = Follower(listen, deadline_s)
    follower.start()
    try:
        follower.join(lines)
        yield follower
    finally:
        follower.stop()


def test_it_hears_what_was_said_before_and_what_is_said_now() -> None:
    with Publisher() as publisher:
        publisher.publish(stored(A))
        line = line_to(publisher.endpoint, publisher.replay_endpoint)
        with following(line):
            until(lambda: line.feed.fresh)
            assert (held(line, A), line.feed.whole) == (8, True)
            publisher.publish(stored(B))
            until(lambda: held(line, B) == 8)
            publisher.publish(CLEARED)
            until(lambda: held(line, A) == 0)


def test_a_message_that_was_lost_is_asked_for() -> None:
    with Publisher() as publisher:
        line = line_to(publisher.endpoint, publisher.replay_endpoint)
        with following(line):
            until(lambda: line.feed.fresh)
            publisher.publish(stored(A), lost=True)
            publisher.publish(stored(B))
            until(lambda: line.feed.fresh and held(line, B) == 8)
            assert (held(line, A), line.feed.gaps, line.feed.whole) == (8, 1, True)
            assert len(publisher.asked) == 2


def test_without_a_replay_socket_a_gap_empties() -> None:
    with Publisher() as publisher:
        line = line_to(publisher.endpoint, None)
        with following(line):
            until(lambda: line.feed.connected)
            until(lambda: publisher.publish(stored(A)) > 20 and line.feed.fresh)
            publisher.publish(stored(C), lost=True)
            publisher.publish(stored(B))
            until(lambda: held(line, B) == 8)
            assert (held(line, A), line.feed.fresh, line.feed.whole) == (0, True, False)


def test_a_replay_that_is_never_answered_is_given_up() -> None:
    with Publisher(answers=False) as publisher:
        line = line_to(publisher.endpoint, publisher.replay_endpoint)
        with following(line, deadline_s=0.1):
            until(lambda: line.feed.failed_replays == 1)
            until(lambda: publisher.publish(stored(A)) > 2 and line.feed.fresh)
            assert held(line, A) == 8


def test_a_publisher_that_ends_is_not_believed_and_its_successor_begins_anew() -> None:
    port, replay_port = free_port(), free_port()
    with Publisher(port=port, replay_port=replay_port) as publisher:
        publisher.publish(stored(A))
        line = line_to(publisher.endpoint, publisher.replay_endpoint)
        follower = Follower(None, 10.0)
        follower.start()
        follower.join([line])
        until(lambda: line.feed.fresh and held(line, A) == 8)
    try:
        until(lambda: not line.feed.fresh)
        with Publisher(port=port, replay_port=replay_port) as successor:
            successor.publish(stored(B))
            until(lambda: line.feed.fresh and held(line, B) == 8)
            assert (held(line, A), line.feed.whole) == (0, True)
    finally:
        follower.stop()


def test_doubt_is_settled_by_the_publisher_itself() -> None:
    with Publisher() as publisher:
        publisher.publish(stored(A))
        line = line_to(publisher.endpoint, publisher.replay_endpoint)
        with following(line) as follower:
            until(lambda: line.feed.fresh)
            follower.doubt([line])
            until(lambda: line.feed.replays == 2 and line.feed.fresh)
            assert (held(line, A), line.feed.restarts) == (8, 0)


def test_publishers_that_connect_by_themselves_are_told_by_topic() -> None:
    ours, theirs = line_to(None, None, b"kv@ours"), line_to(None, None, b"kv@theirs")
    with following(ours, theirs, listen="tcp://127.0.0.1:0") as follower:
        publishers = [Publisher(topic) for topic in (b"kv@ours", b"kv@theirs", b"kv@nobody")]
        for publisher in publishers:
            assert follower.bound is not None
            publisher.connect(follower.bound)
        with publishers[0], publishers[1], publishers[2]:
            until(lambda: publishers[0].publish(stored(A)) > 2 and held(ours, A) == 8)
            until(lambda: publishers[1].publish(stored(B)) > 2 and held(theirs, B) == 8)
            until(lambda: publishers[2].publish(stored(C)) > 2 and follower.strangers > 0)
            assert (held(ours, B), held(theirs, A), ours.feed.fresh) == (0, 0, True)


def test_frames_that_are_no_message_are_counted() -> None:
    with Publisher() as publisher:
        line = line_to(publisher.endpoint, publisher.replay_endpoint)
        with following(line):
            until(lambda: line.feed.fresh)
            for frames in ((TOPIC,), (TOPIC, b"short", b"x"), (TOPIC, b"\0" * 8, b"\xc1"), (TOPIC, *[b"\0" * 8] * 5)):
                publisher.send_frames(*frames)
            until(lambda: line.feed.ignored == 4)
            publisher.publish(stored(A))
            until(lambda: held(line, A) == 8)


def test_who_is_left_is_no_longer_heard() -> None:
    with Publisher() as publisher:
        line = line_to(publisher.endpoint, publisher.replay_endpoint)
        with following(line) as follower:
            until(lambda: line.feed.fresh)
            follower.leave([line])
            until(lambda: not line.feed.connected)
            publisher.publish(stored(A))
            other = line_to(publisher.endpoint, publisher.replay_endpoint)
            follower.join([other])
            until(lambda: held(other, A) == 8)
            assert held(line, A) == 0


def test_addresses_that_are_none_end_nothing() -> None:
    with Publisher() as publisher:
        publisher.publish(stored(A))
        bad, good = line_to("tcp://:nowhere", "x"), line_to(publisher.endpoint, publisher.replay_endpoint)
        mute = line_to(publisher.endpoint, "no address")
        with following(bad, mute, good, deadline_s=0.1):
            # Within so short a deadline the good one's replay may fail too: it goes by what is said from then on.
            until(lambda: publisher.publish(stored(A)) > 2 and held(good, A) == 8 and mute.feed.failed_replays > 0)
            assert not bad.feed.fresh
    with pytest.raises(ValueError, match="kv_events_listen"):
        Follower("tcp://nowhere", 1.0).start()
