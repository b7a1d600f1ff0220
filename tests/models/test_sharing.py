"""Sharing a token budget: it holds, order does not matter, and no image is kept small for another's sake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded
from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.families import family_of
from gateway.models.families.grid import GridFamily
from gateway.models.sharing import Budget, share
from gateway.types import ImageTokens, Size

CHECKPOINT = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
FAMILY = family_of(CHECKPOINT.family)
# One checkpoint of each family.
FAMILIES = list({each.family: each for each in shipped_catalog().checkpoints if each.family != "text_only"}.values())
SIDES = st.integers(1, 4000)
SIZES = st.lists(st.builds(Size, SIDES, SIDES), min_size=1, max_size=6)


def tokens(sizes: list[Size], caps: tuple[int | None, ...]) -> list[int]:
    plans = [
        FAMILY.plan(size, CHECKPOINT, cap_pixels=None, cap_tokens=cap) for size, cap in zip(sizes, caps, strict=True)
    ]
    return [plan.tokens.tokens for plan in plans]


def shared(sizes: list[Size], budget: int) -> list[int] | None:
    caps = share(sizes, FAMILY, CHECKPOINT, Budget(budget, None))
    return None if caps is None else tokens(sizes, caps)


def test_one_large_image_gives_to_the_small_ones() -> None:
    small, large = Size(256, 256), Size(4000, 3000)
    assert shared([small, large, small], 1000) == [64, 850, 64]
    assert shared([large, large], 2000) == [999, 999]


def test_within_the_budget_nothing_changes() -> None:
    sizes = [Size(640, 480), Size(448, 448)]
    assert share(sizes, FAMILY, CHECKPOINT, Budget(496, None)) == (None, None)


def test_a_budget_below_all_floors_cannot_be_kept() -> None:
    sizes = [Size(640, 480)] * 3
    assert share(sizes, FAMILY, CHECKPOINT, Budget(3 * 64 - 1, None)) is None
    assert share(sizes, FAMILY, CHECKPOINT, Budget(0, None)) is None
    assert share([], FAMILY, CHECKPOINT, Budget(0, None)) == ()


def test_the_cap_in_pixels_holds_besides() -> None:
    caps = share([Size(4000, 3000)] * 2, FAMILY, CHECKPOINT, Budget(10_000, 320 * 320))
    assert caps == (None, None)


@settings(max_examples=60)
@given(SIZES, st.integers(1, 6000), st.randoms(use_true_random=False))
def test_budgets_hold_and_nobody_starves(sizes: list[Size], budget: int, order: object) -> None:
    try:
        found = shared(sizes, budget)
    except AspectRatioExceeded:
        assume(False)
        raise
    whole = tokens(sizes, (None,) * len(sizes))
    if found is None:
        assert sum(tokens(sizes, (1,) * len(sizes))) > budget
        return
    assert sum(found) <= budget or found == whole
    for size, own, full in zip(sizes, found, whole, strict=True):
        for other in found:
            # Whoever is shrunk could not have more and still stay below another's share.
            assert own == full or other <= 1 or tokens([size], (other - 1,))[0] <= max(own, other - 1)
            if own < full and other - 1 > own:
                assert tokens([size], (other - 1,))[0] <= own
    backwards = shared(sizes[::-1], budget)
    assert backwards == found[::-1]


@pytest.mark.parametrize("budget", [64, 100, 640, 641, 5000])
def test_a_larger_budget_never_gives_less(budget: int) -> None:
    sizes = [Size(1170, 2532), Size(1280, 720)]
    smaller, larger = shared(sizes, budget), shared(sizes, budget + 200)
    assert smaller is None or (larger is not None and min(larger) >= min(smaller))


@pytest.mark.parametrize("checkpoint", FAMILIES, ids=lambda checkpoint: checkpoint.family)
@settings(max_examples=8)
@given(SIZES, st.integers(1, 12_000))
def test_every_family_keeps_the_budget_in_any_order(checkpoint: Checkpoint, sizes: list[Size], budget: int) -> None:
    family = family_of(checkpoint.family)
    try:
        caps = share(sizes, family, checkpoint, Budget(budget, None))
        if caps is None:
            return
        targets = [
            family.plan(size, checkpoint, cap_pixels=None, cap_tokens=cap).size
            for size, cap in zip(sizes, caps, strict=True)
        ]
        total = sum(price.tokens for price in family.request_tokens(targets, checkpoint))
        assert total <= budget
        assert share(sizes[::-1], family, checkpoint, Budget(budget, None)) == caps[::-1]
    except AspectRatioExceeded:
        return


@pytest.mark.parametrize("checkpoint", FAMILIES, ids=lambda checkpoint: checkpoint.family)
@settings(max_examples=8)
@given(st.lists(st.builds(Size, SIDES, SIDES), min_size=1, max_size=14))
def test_what_an_image_costs_among_others_is_its_price_in_the_request(
    checkpoint: Checkpoint, sizes: list[Size]
) -> None:
    family = family_of(checkpoint.family)
    try:
        whole = [price.tokens for price in family.request_tokens(sizes, checkpoint)]
        alone = [family.tokens_among(size, len(sizes), checkpoint) for size in sizes]
    except AspectRatioExceeded:
        return
    assert alone in ([None] * len(sizes), whole)


class Counting(GridFamily):
    """Qwen's family, with a count of what it is asked."""

    priced: ClassVar[Counter[Size]] = Counter()

    def tokens_among(self, size: Size, image_count: int, checkpoint: Checkpoint) -> int | None:
        self.priced[size] += 1
        return super().tokens_among(size, image_count, checkpoint)

    def request_tokens(self, sizes: Sequence[Size], checkpoint: Checkpoint) -> tuple[ImageTokens, ...]:
        raise AssertionError("the images of this family can be priced one by one")


def test_no_target_is_priced_twice_however_long_the_search() -> None:
    sizes = [Size(300 + 37 * number, 3000 - 23 * number) for number in range(100)]
    counting = Counting("counting", "", 2)
    caps = share(sizes, counting, CHECKPOINT, Budget(20_000, None))
    assert caps == share(sizes, FAMILY, CHECKPOINT, Budget(20_000, None))
    assert set(counting.priced.values()) == {1}
