from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policy.dropping import images_to_drop, images_too_large, is_replaceable, oldest_beyond
from gateway.policy.effective import Excess, OnExcess
from tests.policy.examples import call, part, policy

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
