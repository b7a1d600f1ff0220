"""OpenAI's rules: the vendor's own worked examples, and what levels mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.closed.openai import PROFILES
from gateway.types import Size

SIDES = st.integers(1, 100_000)


@pytest.mark.parametrize(
    ("model", "size", "detail", "tokens"),
    [
        ("gpt-4o", Size(1024, 1024), "high", 765),
        ("gpt-4o", Size(2048, 4096), None, 1105),
        ("gpt-4o", Size(4096, 4096), "low", 85),
        ("gpt-5.2", Size(1800, 2400), None, 1452),
        ("gpt-5.2", Size(1024, 1024), None, 1024),
        ("gpt-5.5", Size(4096, 4096), "high", 2500),
        ("gpt-5.5", Size(4096, 4096), "auto", 10_000),
        ("gpt-5.6", Size(6400, 6400), "auto", 40_000),
    ],
)
def test_worked_examples(model: str, size: Size, detail: str | None, tokens: int) -> None:
    assert PROFILES[model].image_tokens(size, detail).tokens == tokens


@given(SIDES, SIDES)
def test_a_cap_holds_for_every_size(width: int, height: int) -> None:
    capped = PROFILES["gpt-5.2"].image_tokens(Size(width, height))
    assert 1 <= capped.tokens <= 1536
    low = PROFILES["gpt-5.2"].image_tokens(Size(width, height), "low")
    assert low.tokens <= 256
    assert max(low.size.width, low.size.height) <= 512
