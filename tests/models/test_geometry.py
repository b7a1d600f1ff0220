from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.errors import AspectRatioExceeded, Undecodable
from gateway.models.catalog import shipped_catalog
from gateway.models.geometry import (
    check_ratio,
    check_sides,
    is_settled,
    keeps_aspect,
    normalised_size,
    smallest_settled,
    smart_resize,
    trimmed,
)
from gateway.types import Size

QWEN2 = shipped_catalog().find("Qwen/Qwen2-VL-7B-Instruct").checkpoint
QWEN3 = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
SIDES = st.one_of(st.integers(1, 100_000), st.integers(1, 300))
SIZES = st.builds(Size, SIDES, SIDES)


def resized(width: int, height: int, factor: int = 28) -> Size:
    return smart_resize(Size(width, height), factor=factor, min_pixels=3136, max_pixels=12_845_056)


@pytest.mark.parametrize(
    ("side", "cells"),
    [(42, 2), (70, 2), (98, 4)],
)
def test_half_a_cell_rounds_to_even(side: int, cells: int) -> None:
    assert resized(side, 280).width == cells * 28


def test_the_oracles_edges() -> None:
    assert resized(1280, 720, 32) == Size(1280, 704)
    assert resized(10, 2000) == Size(28, 812)
    assert resized(200, 1).pixels >= 3136


def test_only_beyond_the_ratio_is_refused() -> None:
    assert resized(28, 5600) == Size(28, 5600)
    for size in (Size(28, 5601), Size(201, 1)):
        with pytest.raises(AspectRatioExceeded, match="200:1") as caught:
            resized(size.width, size.height)
        assert str(size) in caught.value.message
        assert caught.value.code == "aspect_ratio_exceeded"


def test_refusals_say_what_is_wrong() -> None:
    with pytest.raises(Undecodable, match="0x7"):
        check_sides(Size(0, 7))
    with pytest.raises(AspectRatioExceeded, match=r"3\.0:1 \(30x10\).*2\.5:1"):
        check_ratio(Size(30, 10), 2.5)
    check_sides(Size(1, 1))
    check_ratio(Size(20, 10), 2)


@given(SIZES)
def test_any_size_resizes_to_the_grid_or_raises_the_one_error(size: Size) -> None:
    if max(size.width, size.height) > 200 * min(size.width, size.height):
        with pytest.raises(AspectRatioExceeded):
            resized(size.width, size.height)
        return
    result = resized(size.width, size.height)
    assert result.width % 28 == 0 < result.width
    assert result.height % 28 == 0 < result.height
    assert 3136 <= result.pixels <= 12_845_056


@given(SIZES, st.sampled_from([QWEN2, QWEN3]))
def test_normalising_enlarges_only_what_is_too_small_and_keeps_the_aspect(size: Size, checkpoint: object) -> None:
    assert checkpoint in (QWEN2, QWEN3)
    numbers = QWEN2 if checkpoint is QWEN2 else QWEN3
    if max(size.width, size.height) > 200 * min(size.width, size.height):
        with pytest.raises(AspectRatioExceeded):
            normalised_size(size, numbers)
        return
    result = normalised_size(size, numbers)
    assert min(result.width, result.height) >= numbers.factor
    assert (result == size) is (min(size.width, size.height) >= numbers.factor)
    if result != size:
        assert min(result.width, result.height) == numbers.factor
        scale = numbers.factor / min(size.width, size.height)
        assert abs(result.width - size.width * scale) <= 0.5
        assert abs(result.height - size.height * scale) <= 0.5
    check_ratio(result, numbers.max_ratio)
    assert normalised_size(result, numbers) == result


def test_normalising_a_size_without_area_is_refused() -> None:
    with pytest.raises(Undecodable):
        normalised_size(Size(0, 0), QWEN2)


def test_settled_is_what_the_processor_leaves_alone() -> None:
    assert is_settled(Size(256, 256), QWEN3)
    assert not is_settled(Size(256, 255), QWEN3)
    assert not is_settled(Size(224, 256), QWEN3)
    assert not is_settled(Size(4096, 4128), QWEN3)
    assert not is_settled(Size(32, 32 * 201), QWEN3)


@given(st.integers(1, 640), st.integers(1, 640), st.sampled_from([QWEN2, QWEN3]))
def test_settled_agrees_with_the_processor(columns: int, rows: int, checkpoint: object) -> None:
    numbers = QWEN2 if checkpoint is QWEN2 else QWEN3
    assume(max(columns, rows) <= 200 * min(columns, rows))
    size = Size(columns * numbers.factor, rows * numbers.factor)
    same = smart_resize(size, factor=numbers.factor, min_pixels=numbers.min_pixels, max_pixels=numbers.max_pixels)
    assert is_settled(size, numbers) is (same == size)


def test_aspect_is_kept_to_within_one_cell_per_side() -> None:
    assert keeps_aspect(Size(1000, 1000), Size(280, 308), 28)
    assert not keeps_aspect(Size(1000, 1000), Size(280, 336), 28)
    assert not keeps_aspect(Size(1000, 1000), Size(336, 280), 28)


def test_trimming_cuts_the_long_side_to_cap_and_ratio() -> None:
    assert trimmed(Size(28, 28 * 141), 100 * 784, QWEN2) == Size(28, 2800)
    assert trimmed(Size(28 * 141, 28), 100 * 784, QWEN2) == Size(2800, 28)
    assert trimmed(Size(56, 12_992), 10**7, QWEN2) == Size(56, 11_200)
    assert trimmed(Size(280, 280), 10**7, QWEN2) == Size(280, 280)
    assert trimmed(Size(28, 28), 100, QWEN2) == Size(28, 28)


@given(SIZES, st.sampled_from([3136, 200_704, 5_000, 1]))
def test_the_floor_is_settled_and_is_its_own_floor(size: Size, min_pixels: int) -> None:
    assume(max(size.width, size.height) <= 200 * min(size.width, size.height))
    numbers = QWEN2.with_(min_pixels=min_pixels)
    floor = smallest_settled(size, numbers)
    assert is_settled(floor, numbers)
    assert smallest_settled(floor, numbers).pixels == floor.pixels
    if max(size.width, size.height) <= 50 * min(size.width, size.height):
        assert keeps_aspect(size, floor, numbers.factor)


def test_the_floor_keeps_the_orientation() -> None:
    assert smallest_settled(Size(4000, 2000), QWEN3) == Size(352, 192)
    assert smallest_settled(Size(2000, 4000), QWEN3) == Size(192, 352)
    assert smallest_settled(Size(77, 77), QWEN3) == Size(256, 256)
