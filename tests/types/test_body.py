"""The parts of a request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.types import ImagePart, Span

counts = st.integers(min_value=0, max_value=1_000_000)


def test_an_image_is_named_by_its_place() -> None:
    image = ImagePart(pointer=("messages", 0), part=("messages",), source="x")
    assert image.name == "messages.0"


@given(start=counts, length=counts)
def test_a_span_is_half_open(start: int, length: int) -> None:
    assert Span(start, start + length).byte_count == length
