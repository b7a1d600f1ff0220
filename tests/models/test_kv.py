from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.models import kv
from gateway.models.catalog import shipped_catalog

LLAMA_70B = kv.KvShape(full_layers=80, kv_heads=8, head_dim=128)
QWEN35_SMALL = kv.KvShape(6, 2, 256, linear=kv.LinearLayers(18, 16, 16, 128, 128, 4))
GEMMA3_4B = kv.KvShape(5, 4, 256, window_layers=(kv.WindowLayers(29, 4, 256, 1024),))
DEEPSEEK = kv.KvShape(61, 1, 576, latent_dim=576)
LLAMA_VISION = kv.KvShape(32, 8, 128, cross=kv.CrossLayers(8, 8, 128))


def test_llama_70b_takes_320_kib_a_token() -> None:
    assert kv.bytes_per_token(LLAMA_70B) == 327_680
    assert kv.bytes_per_token(LLAMA_70B, element_bytes=1) == 163_840


@pytest.mark.parametrize(
    ("name", "kib", "block"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", 56, 16),
        ("Qwen/Qwen2.5-VL-72B-Instruct", 320, 16),
        ("Qwen/Qwen3-VL-8B-Instruct", 144, 16),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", 96, 16),
        ("Qwen/Qwen3.5-2B", 12, 544),
        ("Qwen/Qwen3.5-4B", 32, 528),
        ("Qwen/Qwen3.5-9B", 32, 528),
        ("Qwen/Qwen3.5-27B", 64, 784),
        ("Qwen/Qwen3.5-35B-A3B", 20, 1056),
        ("Qwen/Qwen3.5-122B-A10B", 24, 2096),
        ("Qwen/Qwen3.5-397B-A17B", 30, 2096),
        ("Qwen/Qwen3.6-27B", 64, 784),
        ("Qwen/Qwen3.6-35B-A3B", 20, 1056),
        ("meta-llama/Llama-3.1-8B-Instruct", 128, 16),
        ("meta-llama/Llama-3.1-405B-Instruct", 504, 16),
    ],
)
def test_shipped_checkpoints_take_what_the_engine_allocates(name: str, kib: int, block: int) -> None:
    shape = shipped_catalog().find(name).checkpoint.kv
    assert shape is not None
    assert kv.bytes_per_token(shape) == kib * 1024
    assert kv.block_tokens(shape) == block


def test_latent_attention_keeps_one_vector_a_layer() -> None:
    assert kv.bytes_per_token(DEEPSEEK) == 61 * 576 * 2


def test_windows_grow_and_then_stop() -> None:
    assert kv.bytes_per_token(GEMMA3_4B) == 139_264
    assert kv.window_limit_bytes(GEMMA3_4B) == 121_634_816
    pair = 29 * 2 * 4 * 256 * 2
    short, long = (kv.request_kv_bytes(GEMMA3_4B, tokens, 0) for tokens in (160, 16_000))
    assert short == 160 * kv.bytes_per_token(GEMMA3_4B)
    assert long == 16_000 * kv.growing_bytes_per_token(GEMMA3_4B) + pair * (1024 + 16)


def test_linear_layers_hold_a_padded_state_however_short_the_request() -> None:
    assert kv.state_bytes_per_sequence(QWEN35_SMALL) == 19_537_920
    page = 544 * 2 * 2 * 256 * 2
    assert kv.request_kv_bytes(QWEN35_SMALL, 1, 0) == 544 * 12_288 + 18 * page
    assert kv.request_kv_bytes(QWEN35_SMALL, 544, 1) - kv.request_kv_bytes(QWEN35_SMALL, 1, 0) == 544 * 12_288


def test_a_backends_own_page_wins() -> None:
    assert kv.request_kv_bytes(LLAMA_70B, 1, 0, page_tokens=64) == 64 * 327_680


def test_cross_attention_is_charged_per_encoder_token() -> None:
    tile = kv.request_kv_bytes(LLAMA_VISION, 16, 0, encoder_tokens=1601) - kv.request_kv_bytes(LLAMA_VISION, 16, 0)
    assert tile == 1601 * 32_768


@given(st.integers(0, 10**6), st.integers(0, 10**5), st.sampled_from([1, 16, 64, 2096]))
def test_tokens_are_rounded_up_to_whole_blocks(prompt: int, output: int, block: int) -> None:
    charged = kv.request_kv_tokens(prompt, output, block)
    assert charged % block == 0
    assert 0 <= charged - (prompt + output) < block


@given(st.integers(0, 50_000), st.integers(0, 50_000))
def test_a_longer_request_never_holds_less(tokens: int, more: int) -> None:
    for shape in (LLAMA_70B, QWEN35_SMALL, GEMMA3_4B, DEEPSEEK):
        assert kv.request_kv_bytes(shape, tokens, 0) <= kv.request_kv_bytes(shape, tokens, more)


@pytest.mark.parametrize("counts", [(-1, 0, 16), (0, -1, 16), (1, 1, 0)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="prompt_tokens"):
        kv.request_kv_tokens(*counts)


def test_ranks_split_heads_but_never_below_one() -> None:
    assert kv.bytes_per_token(kv.tensor_share(LLAMA_70B, 4)) * 4 == kv.bytes_per_token(LLAMA_70B)
    assert kv.tensor_share(LLAMA_70B, 16).kv_heads == 1  # replicated: two ranks hold the same head
    assert kv.tensor_share(DEEPSEEK, 8) == DEEPSEEK
    assert kv.tensor_share(QWEN35_SMALL, 2).linear == kv.LinearLayers(18, 8, 8, 128, 128, 4)
    assert kv.tensor_share(GEMMA3_4B, 4).window_layers[0].kv_heads == 1
    assert kv.tensor_share(LLAMA_VISION, 2).cross == kv.CrossLayers(8, 4, 128)
    assert kv.tensor_share(LLAMA_70B, 1) == LLAMA_70B
    with pytest.raises(ValueError, match="ranks"):
        kv.tensor_share(LLAMA_70B, 0)
