"""How far an image may shrink: the decision alone, over measures as a worker reports them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.detail import TEXT_PERMILLE, adapted_pixels, tolerated_loss
from gateway.types import Detail

FLOOR = 65_536
decibels = st.integers(20, 60)
details = st.builds(
    lambda pixels, losses, text: Detail(pixels, tuple(losses), text),
    st.integers(4_096, 4_000_000),
    st.lists(st.integers(0, 255 * 255 * 256), min_size=0, max_size=8),
    st.integers(0, 1000),
)
originals = st.integers(1, 100_000_000)


def at(*psnr_db: int) -> tuple[int, ...]:
    return tuple(tolerated_loss(each) for each in psnr_db)


def decide(detail: Detail, original: int = 12_192_768, psnr_db: int = 30, floor: int = FLOOR) -> int | None:
    return adapted_pixels(detail, original, floor_pixels=floor, halving_psnr_db=psnr_db)


def test_the_size_is_twice_as_wide_as_the_one_that_keeps_what_is_asked() -> None:
    detail = Detail(3_000_000, at(40, 35, 30, 20), 0)
    assert decide(detail, psnr_db=30) == 4 * (3_000_000 // 4**3)
    assert decide(detail, psnr_db=35) == 4 * (3_000_000 // 4**2)
    between = decide(detail, psnr_db=33)
    assert between is not None
    assert 4 * (3_000_000 // 4**3) < between < 4 * (3_000_000 // 4**2)


def test_below_what_was_measured_nothing_is_claimed() -> None:
    assert decide(Detail(1_048_576, (0, 0), 0), floor=1) == 262_144


def test_the_floor_holds() -> None:
    assert decide(Detail(3_000_000, at(60, 60, 60, 60, 60, 60), 0)) == FLOOR


@pytest.mark.parametrize(
    ("detail", "original"),
    [
        (Detail(3_000_000, at(40, 35, 30), TEXT_PERMILLE), 12_000_000),
        (Detail(3_000_000, (), 0), 12_000_000),
        (Detail(3_000_000, at(19, 18, 17), 0), 12_000_000),
        (Detail(1_000_000, at(30, 20), 0), 1_400_000),
        (Detail(50_000, at(60, 60), 0), 50_000),
    ],
    ids=["text", "too narrow", "fine everywhere", "less than a third", "small"],
)
def test_left_alone(detail: Detail, original: int) -> None:
    assert decide(detail, original) is None


def test_a_loss_is_tolerated_up_to_its_decibels() -> None:
    assert [tolerated_loss(each) for each in (10, 20, 30)] == [1_664_640, 166_464, 16_646]


@given(details, originals, decibels, decibels)
def test_a_lower_psnr_never_keeps_more(detail: Detail, original: int, one: int, other: int) -> None:
    stronger, gentler = sorted((one, other))
    smaller, larger = decide(detail, original, stronger), decide(detail, original, gentler)
    assert larger is None or (smaller is not None and smaller <= larger)


@given(details, originals, decibels, st.integers(1_024, 10_000_000))
def test_what_is_decided_is_a_gain_above_the_floor(detail: Detail, original: int, psnr_db: int, floor: int) -> None:
    pixels = decide(detail, original, psnr_db, floor)
    assert pixels is None or floor <= pixels <= original * 2 // 3


@given(details, originals, decibels)
def test_what_was_shrunk_once_stays(detail: Detail, original: int, psnr_db: int) -> None:
    pixels = decide(detail, original, psnr_db)
    if pixels is not None:
        assert decide(detail, pixels, psnr_db) is None


@given(details, originals, decibels, st.integers(1, 8))
def test_more_loss_never_shrinks_more(detail: Detail, original: int, psnr_db: int, times: int) -> None:
    busier = Detail(detail.pixels, tuple(loss * times for loss in detail.losses), detail.text_permille)
    pixels, kept = decide(detail, original, psnr_db), decide(busier, original, psnr_db)
    assert kept is None or (pixels is not None and pixels <= kept)
