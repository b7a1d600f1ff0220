"""Magnitudes against the oracle's rough table; 5 % is what its two digits allow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models.catalog import shipped_catalog
from gateway.models.cost import DecoderShape, encoder_flops, prefill_flops


@pytest.mark.parametrize(
    ("name", "patches", "teraflops"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", 1024, 1.5),
        ("Qwen/Qwen2-VL-7B-Instruct", 4784, 9.9),
        ("Qwen/Qwen2-VL-7B-Instruct", 15_120, 56.9),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 1024, 1.3),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 4784, 6.7),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 15_120, 24.3),
        ("Qwen/Qwen3-VL-8B-Instruct", 1024, 1.0),
        ("Qwen/Qwen3-VL-8B-Instruct", 3520, 4.5),
        ("Qwen/Qwen3-VL-8B-Instruct", 11_692, 26.9),
        ("Qwen/Qwen3-VL-2B-Instruct", 1024, 0.74),
        ("Qwen/Qwen3-VL-2B-Instruct", 3520, 3.4),
        ("Qwen/Qwen3.5-0.8B", 1024, 0.22),
        ("Qwen/Qwen3.5-0.8B", 3520, 1.1),
        ("Qwen/Qwen3.5-0.8B", 11_692, 7.1),
    ],
)
def test_encoders_cost_what_the_oracle_says(name: str, patches: int, teraflops: float) -> None:
    shape = shipped_catalog().find(name).checkpoint.encoder
    assert shape is not None
    assert encoder_flops(shape, patches) / 1e12 == pytest.approx(teraflops, rel=0.05)


def test_prefill_is_two_flops_a_parameter_and_a_quadratic_term() -> None:
    shape = DecoderShape(active_parameters=10**9, attention_layers=10, heads=8, head_dim=128)
    assert prefill_flops(shape, 1000) == 2 * 10**12 + 2 * 10 * 8 * 128 * 10**6


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_cached_prefix_and_the_rest_cost_the_whole(cached: int, rest: int) -> None:
    shape = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint.decoder
    assert shape is not None
    whole = prefill_flops(shape, cached + rest)
    assert prefill_flops(shape, cached) + prefill_flops(shape, cached + rest, cached_tokens=cached) == whole


def test_counts_that_cannot_be_are_refused() -> None:
    checkpoint = shipped_catalog().find("Qwen/Qwen3-VL-8B-Instruct").checkpoint
    assert checkpoint.encoder is not None
    assert checkpoint.decoder is not None
    with pytest.raises(ValueError, match="patches"):
        encoder_flops(checkpoint.encoder, -1)
    with pytest.raises(ValueError, match="cached_tokens"):
        prefill_flops(checkpoint.decoder, 10, cached_tokens=11)
