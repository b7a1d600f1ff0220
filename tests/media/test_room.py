from __future__ import annotations

import pytest

from gateway.errors import BodyMemoryExhausted, ImageTooLarge, SourceTooLarge
from gateway.media.room import PREPARED, Room


def test_one_request_holds_no_more_than_its_share() -> None:
    room = Room(100)
    share = room.share(10)
    share.take(6)
    share.take(4)
    with pytest.raises(SourceTooLarge, match="together are larger than 10 bytes"):
        share.take(1)
    assert room.held_bytes == 10


def test_all_together_hold_no_more_than_the_room() -> None:
    room = Room(10)
    first, second = room.share(8), room.share(8)
    first.take(8)
    with pytest.raises(BodyMemoryExhausted) as caught:
        second.take(3)
    assert caught.value.retry_after_s
    first.close()
    second.take(3)
    assert room.held_bytes == 3


def test_what_is_closed_has_given_back_and_holds_nothing_more() -> None:
    room = Room(10)
    share = room.share(8)
    share.take(5)
    share.close()
    share.close()
    with pytest.raises(SourceTooLarge):
        share.take(1)
    assert room.held_bytes == 0


def test_a_refusal_says_what_was_too_much() -> None:
    share = Room(100).share(10, PREPARED)
    with pytest.raises(ImageTooLarge, match="The prepared images together") as refused:
        share.take(11)
    assert refused.value.rule == "max_prepared_bytes"
