"""Prices in tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.types import ImageTokens, TokenEstimate

counts = st.integers(min_value=0, max_value=1_000_000)
price = ImageTokens(
    tokens=196, struct_tokens=0, wrapper_tokens=2, grid=(1, 28, 28), position_advance=14, vit_patches=784
)


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
