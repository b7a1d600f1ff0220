from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.dropping import (
    batches_beyond,
    images_to_drop,
    images_too_large,
    inline_bytes,
    is_replaceable,
    oldest_beyond,
)
from gateway.policy.effective import Excess, History, OnExcess
from tests.policy.examples import call, long_source, part, policy

DROPS = OnExcess(
    max_images=Excess.DROP_OLDEST, max_total_pixels=Excess.DROP_OLDEST, max_image_tokens=Excess.DROP_OLDEST
)
FIVE = call(*[part(index) for index in range(5)])


@pytest.mark.parametrize(("limit", "dropped"), [(None, ()), (5, ()), (4, (0,)), (2, (0, 1, 2)), (0, (0, 1, 2, 3))])
def test_the_oldest_that_are_too_many_go(limit: int | None, dropped: tuple[int, ...]) -> None:
    assert images_to_drop(policy(max_images=limit, on_excess=DROPS), FIVE) == dropped
    assert images_to_drop(policy(max_images=limit), FIVE) == ()


def test_each_limit_takes_what_it_must() -> None:
    pixels, tokens = [10, 10, 10, 10, 10], [1, 9, 1, 1, 1]
    assert images_too_large(policy(max_total_pixels=30, on_excess=DROPS), FIVE, pixels, tokens) == (0, 1)
    assert images_too_large(policy(max_image_tokens=12, on_excess=DROPS), FIVE, pixels, tokens) == (0,)
    both = policy(max_total_pixels=40, max_image_tokens=3, on_excess=DROPS)
    assert images_too_large(both, FIVE, pixels, tokens) == (0, 1)
    assert images_too_large(replace(both, on_excess=OnExcess()), FIVE, pixels, tokens) == ()


def test_an_image_that_stands_alone_stays() -> None:
    alone = replace(part(), part=("input", 0, "output"))
    assert not is_replaceable(alone)
    assert oldest_beyond([alone, part(1), part(2)], [1, 1, 1], 2) == (1,)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.integers(0, 500))
def test_no_more_go_than_must_and_never_the_newest(amounts: list[int], limit: int) -> None:
    images = [part(index) for index in range(len(amounts))]
    dropped = oldest_beyond(images, amounts, limit)
    assert dropped == tuple(range(len(dropped)))
    left = amounts[len(dropped) :]
    assert left
    assert sum(left) <= limit or len(left) == 1
    if dropped:
        assert sum(amounts[dropped[-1] :]) > limit


def growing(amounts: list[int], history: History, limit: int) -> list[int]:
    """Where the frontier stands in every turn of a conversation that grows by one image."""
    found = []
    for count in range(len(amounts) + 1):
        asked = call(*[part(index) for index in range(count)])
        gone = batches_beyond(history, asked, amounts[:count], limit)
        assert gone == batches_beyond(history, asked, amounts[:count], limit) == tuple(range(len(gone)))
        found.append(len(gone))
    return found


@given(
    st.lists(st.integers(0, 100), max_size=60),
    st.integers(0, 2_000),
    st.integers(1, 12),
    st.integers(1, 8),
)
def test_the_frontier_never_goes_back_and_leaves_the_newest(
    amounts: list[int], limit: int, batch: int, keep_newest: int
) -> None:
    frontiers = growing(amounts, History(batch=batch, keep_newest=keep_newest), limit)
    assert frontiers == sorted(frontiers)
    for count, frontier in enumerate(frontiers):
        assert frontier == 0 or count - frontier >= keep_newest
        assert sum(amounts[frontier:count]) <= limit or count - frontier <= keep_newest
        assert frontier % batch == 0 or frontier == count - keep_newest


@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 20), st.integers(0, 80))
def test_by_count_it_moves_once_in_every_batch(batch: int, keep_newest: int, room: int, count: int) -> None:
    limit = keep_newest + batch - 1 + room
    frontiers = growing([1] * count, History(images=limit, batch=batch, keep_newest=keep_newest), limit)
    moves = [turn for turn in range(1, count + 1) if frontiers[turn] != frontiers[turn - 1]]
    assert moves == list(range(limit + 1, count + 1, batch))
    assert all(frontier % batch == 0 for frontier in frontiers)


@given(st.lists(st.integers(1, 100), max_size=60), st.integers(1, 12), st.integers(1, 8))
def test_with_room_for_a_batch_it_moves_by_whole_batches(amounts: list[int], batch: int, keep_newest: int) -> None:
    limit = max(amounts, default=1) * (keep_newest + batch)
    frontiers = growing(amounts, History(batch=batch, keep_newest=keep_newest), limit)
    assert all(frontier % batch == 0 for frontier in frontiers)
    assert len(set(frontiers)) - 1 <= len(amounts) // batch


@given(st.lists(st.integers(1, 100), min_size=1, max_size=40), st.integers(1, 500), st.integers(1, 6))
def test_a_second_trigger_after_the_first_keeps_to_the_same_places(amounts: list[int], limit: int, batch: int) -> None:
    history = History(batch=batch, keep_newest=1)
    images = tuple(part(index) for index in range(len(amounts)))
    whole = len(batches_beyond(history, call(*images), amounts, limit))
    for gone in range(0, whole + 1, batch):
        rest = replace(call(*images[gone:]), omitted=images[:gone])
        assert gone + len(batches_beyond(history, rest, amounts[gone:], limit)) == whole


def test_the_first_trigger_that_is_exceeded_decides() -> None:
    sources = call(*[part(index, long_source(4_000)) for index in range(8)])
    by_count = History(images=5, batch=2, keep_newest=2)
    by_bytes = History(images=8, bytes=12_000, batch=2, keep_newest=2)
    assert images_to_drop(policy(history=by_count), sources) == (0, 1, 2, 3)
    assert images_to_drop(policy(history=by_bytes), sources) == (0, 1, 2, 3)
    assert images_to_drop(policy(history=replace(by_bytes, bytes=9_000)), sources) == (0, 1, 2, 3, 4, 5)
    assert images_to_drop(policy(history=History(tokens=1)), sources) == ()
    assert images_to_drop(policy(history=by_count, max_images=2, on_excess=DROPS), sources) == (0, 1, 2, 3, 4, 5)


def test_bytes_are_those_that_came_inline() -> None:
    assert inline_bytes(part(0, long_source(4_000))) == 3_000
    assert inline_bytes(part(0, "data:image/png;base64,AAAAAA")) == 21
    assert inline_bytes(part(0, "https://img.example/a.png")) == 0


def test_an_image_that_cannot_be_replaced_counts_and_stays() -> None:
    alone = replace(part(), part=("input", 0, "output"))
    asked = call(alone, *[part(index) for index in range(1, 6)])
    assert batches_beyond(History(batch=2, keep_newest=1), asked, [1] * 6, 4) == (1, 2, 3)
