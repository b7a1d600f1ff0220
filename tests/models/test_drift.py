"""Deviations: another cap is learnt when several responses agree; all else costs trust, which agreement earns back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.models.catalog import shipped_catalog
from gateway.models.checkpoint import Checkpoint
from gateway.models.drift import ENOUGH, FORGIVEN, Finding, Ledger, Observation, counted, explaining_cap
from gateway.models.families import family_of
from gateway.models.family import Family
from gateway.types import ImageTokens, Size

CHECKPOINT = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
FAMILY = family_of(CHECKPOINT.family)
PHOTOGRAPHS = (Size(4032, 3024), Size(1920, 1080), Size(3000, 3000), Size(1170, 2532))


def seen_under(cap: int, *sizes: Size) -> Observation:
    return Observation(sizes, counted(sizes, FAMILY, CHECKPOINT.with_(max_pixels=cap)))


def test_a_cap_is_learnt_once_several_responses_agree() -> None:
    ledger, cap = Ledger(), 1280 * 32 * 32
    found = [ledger.take(seen_under(cap, size), FAMILY, CHECKPOINT, may_learn=True) for size in PHOTOGRAPHS[:ENOUGH]]
    assert found == [Finding.DEVIATES, None, Finding.CAP_LEARNT]
    assert ledger.learnt_max_pixels is not None
    learnt = CHECKPOINT.with_(max_pixels=ledger.learnt_max_pixels)
    for size in PHOTOGRAPHS:
        assert counted([size], FAMILY, learnt) == counted([size], FAMILY, CHECKPOINT.with_(max_pixels=cap))
        assert ledger.take(seen_under(cap, size), FAMILY, learnt, may_learn=True) is None


def test_the_roundest_cap_is_the_likely_one() -> None:
    observations = [seen_under(1280 * 1024, size) for size in PHOTOGRAPHS]
    assert explaining_cap(observations, FAMILY, CHECKPOINT) == 1280 * 1024


def test_one_size_alone_proves_nothing() -> None:
    ledger = Ledger()
    one = seen_under(1280 * 1024, PHOTOGRAPHS[0])
    found = [ledger.take(one, FAMILY, CHECKPOINT, may_learn=True) for _ in range(ENOUGH)]
    assert found == [Finding.DEVIATES, None, Finding.DISTRUSTED]
    assert ledger.take(seen_under(1280 * 1024, PHOTOGRAPHS[1]), FAMILY, CHECKPOINT, may_learn=True) is (
        Finding.CAP_LEARNT
    )
    assert ledger.is_trusted


def test_what_no_cap_explains_costs_trust_until_it_agrees_for_long() -> None:
    ledger = Ledger()
    odd = [Observation((size,), 77) for size in PHOTOGRAPHS[:2]] + [Observation((PHOTOGRAPHS[2],), 20_000)]
    found = [ledger.take(each, FAMILY, CHECKPOINT, may_learn=True) for each in odd]
    assert found == [Finding.DEVIATES, None, Finding.DISTRUSTED]
    assert not ledger.is_trusted
    assert ledger.surplus_tokens(1000) > 1000
    right = Observation((PHOTOGRAPHS[0],), counted(PHOTOGRAPHS[:1], FAMILY, CHECKPOINT))
    found = [ledger.take(right, FAMILY, CHECKPOINT, may_learn=True) for _ in range(FORGIVEN)]
    assert found == [None] * (FORGIVEN - 1) + [Finding.TRUSTED_AGAIN]
    assert ledger.surplus_tokens(1000) == 0


def test_the_operators_cap_is_not_learnt_over() -> None:
    ledger = Ledger()
    for size in PHOTOGRAPHS:
        ledger.take(seen_under(1280 * 1024, size), FAMILY, CHECKPOINT, may_learn=False)
    assert (ledger.learnt_max_pixels, ledger.is_trusted) == (None, False)


@settings(max_examples=30)
@given(
    st.integers(256 * 1024, CHECKPOINT.max_pixels),
    st.lists(st.builds(Size, st.integers(32, 5000), st.integers(32, 5000)), min_size=3, max_size=6, unique=True),
)
def test_a_cap_that_is_found_explains_everything(cap: int, sizes: list[Size]) -> None:
    usable = [size for size in sizes if max(size.width, size.height) <= 200 * min(size.width, size.height)]
    observations = [seen_under(cap, size) for size in usable]
    found = explaining_cap(observations, FAMILY, CHECKPOINT)
    if len(usable) >= 2:
        assert found is not None
        assert all(
            counted(each.sizes, FAMILY, CHECKPOINT.with_(max_pixels=found)) == each.actual_tokens
            for each in observations
        )


def test_a_request_of_many_images_counts_and_teaches_nothing() -> None:
    ledger = Ledger()
    for size in PHOTOGRAPHS:
        ledger.take(seen_under(1280 * 1024, *[size] * 5), FAMILY, CHECKPOINT, may_learn=True)
    assert (ledger.learnt_max_pixels, ledger.is_trusted) == (None, False)


@pytest.mark.parametrize("actual", [0, 10**9])
def test_nonsense_teaches_nothing(actual: int) -> None:
    observations = [Observation((size,), actual) for size in PHOTOGRAPHS]
    assert explaining_cap(observations, FAMILY, CHECKPOINT) is None


def test_an_engine_that_counts_one_token_for_everything_teaches_no_speck_of_a_cap() -> None:
    """Read as a cap, it would have every image shrunk to one cell."""
    ledger = Ledger()
    found = [ledger.take(Observation((size,), 1), FAMILY, CHECKPOINT, may_learn=True) for size in PHOTOGRAPHS[:ENOUGH]]
    assert found[-1] is Finding.DISTRUSTED
    assert ledger.learnt_max_pixels is None


def test_nonsense_does_not_make_requests_too_large_to_serve() -> None:
    ledger = Ledger()
    for size in PHOTOGRAPHS[:ENOUGH]:
        ledger.take(Observation((size,), 10**9), FAMILY, CHECKPOINT, may_learn=True)
    assert 0 < ledger.surplus_tokens(1000) < 20_000


@pytest.mark.parametrize(("name", "most"), [("AIDC-AI/Ovis2-8B", 2), ("Qwen/Qwen3-VL-8B-Instruct", 120)])
def test_a_strange_engine_does_not_cost_its_arithmetic(name: str, most: int) -> None:
    """In tiles a price takes long and no cap changes it; on grids the first response narrows the search for all."""
    checkpoint = shipped_catalog().find(name).checkpoint
    family = family_of(checkpoint.family)
    asked: list[int] = []

    class Counting:
        def request_tokens(self, sizes: Sequence[Size], under: Checkpoint) -> tuple[ImageTokens, ...]:
            asked.append(under.max_pixels)
            return family.request_tokens(sizes, under)

    sizes = [(Size(900 + 131 * step, 1100), Size(1500, 900 + 77 * step)) for step in range(8)]
    seen = [Observation(each, counted(each, family, checkpoint) // 2 + 1) for each in sizes]
    assert explaining_cap(seen, cast("Family", Counting()), checkpoint) is None
    assert 0 < len(asked) <= most
