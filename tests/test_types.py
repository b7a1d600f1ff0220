"""The nouns: the few values they derive, and that nobody can change what another has read."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.types as nouns
from gateway.types import (
    Change,
    ImageFormat,
    ImagePart,
    ImagePlan,
    ImageTokens,
    OutputFormat,
    Probe,
    RequestCost,
    Size,
    Span,
    TokenEstimate,
    dotted,
)

sides = st.integers(min_value=1, max_value=100_000)
counts = st.integers(min_value=0, max_value=1_000_000)
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


@pytest.mark.parametrize(
    "noun", [value for _, value in inspect.getmembers(nouns, dataclasses.is_dataclass) if inspect.isclass(value)]
)
def test_nouns_are_frozen_and_slotted(noun: type) -> None:
    assert vars(noun)["__dataclass_params__"].frozen
    assert "__slots__" in vars(noun)


def test_a_part_is_named_as_people_write_it() -> None:
    assert dotted(("messages", 1, "content", 0, "image_url")) == "messages.1.content.0.image_url"
    assert dotted(()) == ""
    image = ImagePart(pointer=("messages", 0), part=("messages",), source="x", message_index=0)
    assert image.name == "messages.0"


@given(start=counts, length=counts)
def test_a_span_is_half_open(start: int, length: int) -> None:
    assert Span(start, start + length).byte_count == length


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


def test_an_images_price_is_all_it_adds_to_the_prompt() -> None:
    assert price.prompt_tokens == 198


@given(lower=counts, expected=counts, upper=counts, image=counts, overhead=counts, output=counts)
def test_an_estimate_holds_its_bounds_around_the_expected_prompt(
    lower: int, expected: int, upper: int, image: int, overhead: int, output: int
) -> None:
    lower, expected, upper = sorted((lower, expected, upper))
    estimate = TokenEstimate(
        text_tokens=expected,
        text_lower_bound=lower,
        text_upper_bound=upper,
        image_tokens=image,
        image_overhead_tokens=overhead,
        output_tokens=output,
    )
    assert estimate.prompt_lower_bound <= estimate.prompt_tokens <= estimate.kv_tokens - output
    assert estimate.prompt_tokens == expected + image + overhead


def test_a_request_holds_its_prompt_and_its_output() -> None:
    assert RequestCost(prompt_tokens=900, output_tokens=100, encode_patches=3_520).kv_tokens == 1_000
