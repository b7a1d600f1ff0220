"""An image on its way: sizes, media types, and what a plan leaves alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.types import Change, ImageFormat, ImagePlan, ImageTokens, OutputFormat, Probe, Size

sides = st.integers(min_value=1, max_value=100_000)
price = ImageTokens(
    tokens=196, struct_tokens=0, wrapper_tokens=2, grid=(1, 28, 28), position_advance=14, vit_patches=784
)


def plan(*changes: Change) -> ImagePlan:
    return ImagePlan(
        original=Size(448, 448),
        target=Size(448, 448),
        changes=changes,
        output=OutputFormat.AUTO,
        jpeg_quality=95,
        background=(255, 255, 255),
        version="v1",
        before=price,
        after=price,
    )


@given(width=sides, height=sides)
def test_a_size_is_written_width_first(width: int, height: int) -> None:
    size = Size(width, height)
    assert size.pixels == width * height
    assert str(size) == f"{width}x{height}"


@given(width=sides, height=sides, orientation=st.integers(min_value=1, max_value=8))
def test_four_orientations_swap_the_sides(width: int, height: int, orientation: int) -> None:
    upright = Probe(ImageFormat.JPEG, Size(width, height), orientation=orientation).upright
    assert upright == (Size(height, width) if orientation in {5, 6, 7, 8} else Size(width, height))


def test_media_types_are_the_registered_ones() -> None:
    types = {member: member.media_type for member in ImageFormat}
    assert types[ImageFormat.JPEG] == "image/jpeg"
    assert types[ImageFormat.SVG] == "image/svg+xml"
    assert types[ImageFormat.PDF] == "application/pdf"
    assert len(set(types.values())) == len(types)


def test_an_untouched_image_keeps_its_file() -> None:
    assert plan().untouched
    assert plan().keeps_file


@pytest.mark.parametrize("change", list(Change))
def test_only_a_change_of_spelling_or_place_keeps_the_file(change: Change) -> None:
    assert not plan(change).untouched
    assert plan(change).keeps_file == (change in {Change.DATA_URL, Change.REMOTE})
    assert not plan(Change.DATA_URL, Change.RESIZED).keeps_file
