"""What vLLM 0.32.0's metrics and its development-mode server info tell, cut from a running server's."""

from __future__ import annotations

import pytest

from gateway.upstream.engines.reading import JsonValue
from gateway.upstream.engines.vllm_documents import SEVERAL, CacheFacts, StartFacts, cache_facts, start_facts

CACHE = (
    b'vllm:cache_config_info{_block_size_resolved="True",block_size="128",cache_dtype="auto",enable_prefix_caching='
    b'"True",engine="%d",kv_cache_dtype_skip_layers="[]",kv_cache_size_tokens="1048576",num_gpu_blocks="8192",'
    b'prefix_caching_hash_algo="sha256_cbor"} 1.0\n'
)
PROCESS = b"\nprocess_start_time_seconds 1.79e+09\n"


def config(**changes: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parts of ``vllm_config`` that are read, with changes to them."""
    scheduler: dict[str, JsonValue] = {
        "max_num_batched_tokens": 2048, "enable_chunked_prefill": True, "long_prefill_token_threshold": 0,
        "is_multimodal_model": True, "encoder_cache_size": 2048,
    }  # fmt: skip
    media: dict[str, JsonValue] = {
        "language_model_only": False, "limit_per_prompt": {"image": {"count": 5}},
        "mm_processor_kwargs": {"max_pixels": 1003520},
    }  # fmt: skip
    parallel: dict[str, JsonValue] = {"data_parallel_size": 1, "_api_process_count": 1}
    return {
        "vllm_config": {
            "scheduler_config": scheduler | changes.get("scheduler", {}),
            "model_config": {"multimodal_config": media | changes.get("media", {})},
            "parallel_config": parallel | changes.get("parallel", {}),
        }
    }


def test_cache() -> None:
    assert cache_facts(CACHE % 0 + PROCESS) == CacheFacts(1_048_576, 128, "sha256_cbor", 1, 1)
    assert cache_facts(CACHE % 0 + CACHE % 1) == CacheFacts(2_097_152, 128, "sha256_cbor", 2, SEVERAL)
    assert cache_facts(b"") == CacheFacts()
    off = (CACHE % 0).replace(b'caching="True"', b'caching="False"')
    assert cache_facts(off).prefix_hash is None


def test_start() -> None:
    assert start_facts(config()) == StartFacts(1_003_520, 5, None, 2048, 2048, 1)
    assert start_facts({}) == start_facts({"vllm_config": "text"}) == StartFacts()


@pytest.mark.parametrize(
    ("processor", "pixels"),
    [
        ({"size": {"longest_edge": 1003520, "shortest_edge": 65536}}, 1003520),
        ({"size": {"longest_edge": 1024}}, None),
        ({"images_kwargs": {"max_pixels": 50_176}}, 50_176),
        ({}, None),
    ],
)
def test_spellings_of_the_cap(processor: dict[str, JsonValue], pixels: int | None) -> None:
    assert start_facts(config(media={"mm_processor_kwargs": processor})).max_pixels == pixels


def test_what_takes_no_images() -> None:
    for changed in (
        config(scheduler={"is_multimodal_model": False}),
        config(media={"limit_per_prompt": {"image": 0}}),
        config(media={"language_model_only": True}),
    ):
        facts = start_facts(changed)
        assert facts.vision is False
    assert start_facts(config(media={"limit_per_prompt": {"image": 3}})).max_images == 3


def test_steps_of_prefill() -> None:
    assert start_facts(config(scheduler={"long_prefill_token_threshold": 512})).prefill_chunk_tokens == 512
    assert start_facts(config(scheduler={"enable_chunked_prefill": False})).prefill_chunk_tokens is None
