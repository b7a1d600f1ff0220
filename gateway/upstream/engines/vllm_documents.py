"""What vLLM's metrics and its development-mode server info tell about how it was started.

Read from 0.32.0: ``vllm:cache_config_info`` carries the whole cache configuration in labels, once per data-parallel
rank; ``/server_info?config_format=json`` prints the resolved configuration. Not decided here: which path is which.
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.upstream.engines.reading import JsonValue, inner_object, samples, whole, words

# With several API servers prometheus_client runs in its multiprocess mode, which has no metrics of the process
# (vllm/entrypoints/cli/serve.py, run_multi_api_server). How many there are nobody says.
_OF_ONE_PROCESS = b"\nprocess_start_time_seconds "
_ANY_VLLM = b"vllm:"
SEVERAL = 2
# 256 x 256, Qwen3-VL's own minimum: no side is that long.
_SMALLEST_AREA = 65_536


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """``capacity_tokens`` over all ranks. ``api_servers`` is 1, or SEVERAL."""

    capacity_tokens: int | None = None
    block_tokens: int | None = None
    prefix_hash: str | None = None
    ranks: int | None = None
    api_servers: int | None = None


@dataclass(frozen=True, slots=True)
class StartFacts:
    """What only the development-mode document tells. ``max_pixels`` is the cap given to the model's processor."""

    max_pixels: int | None = None
    max_images: int | None = None
    vision: bool | None = None
    encoder_cache_tokens: int | None = None
    prefill_chunk_tokens: int | None = None
    api_servers: int | None = None


def cache_facts(metrics: bytes) -> CacheFacts:
    """From the exposition. Versions without ``kv_cache_size_tokens`` give blocks: capacity = blocks x block size."""
    capacity = 0
    block: int | None = None
    algorithm: str | None = None
    ranks = set()
    for sample in samples(metrics, "vllm:cache_config_info"):
        labels = sample.labels
        block = _label(labels, "block_size") or block
        tokens = _label(labels, "kv_cache_size_tokens")
        if tokens is None:
            blocks = _label(labels, "num_gpu_blocks")
            tokens = blocks * block if blocks is not None and block is not None else None
        capacity += tokens or 0
        ranks.add(labels.get("engine", "0"))
        if labels.get("enable_prefix_caching") == "True":
            algorithm = labels.get("prefix_caching_hash_algo") or algorithm
    return CacheFacts(capacity or None, block, algorithm, len(ranks) or None, _api_servers(metrics))


def _api_servers(metrics: bytes) -> int | None:
    if _ANY_VLLM not in metrics:
        return None
    return 1 if _OF_ONE_PROCESS in metrics else SEVERAL


def start_facts(server: dict[str, JsonValue]) -> StartFacts:
    """From the configuration as resolved; nothing of a server that does not print it."""
    config = inner_object(server.get("vllm_config"))
    scheduler, parallel = inner_object(config.get("scheduler_config")), inner_object(config.get("parallel_config"))
    media = inner_object(inner_object(config.get("model_config")).get("multimodal_config"))
    limit = _limit(inner_object(media.get("limit_per_prompt")).get("image"))
    return StartFacts(
        max_pixels=_max_pixels(inner_object(media.get("mm_processor_kwargs"))),
        max_images=limit or None,
        vision=_vision(scheduler.get("is_multimodal_model"), media, limit),
        encoder_cache_tokens=whole(scheduler.get("encoder_cache_size")),
        prefill_chunk_tokens=_chunk(scheduler),
        api_servers=whole(parallel.get("_api_process_count")),
    )


def _vision(multimodal: JsonValue, media: dict[str, JsonValue], image_limit: int | None) -> bool | None:
    """A multimodal model without an encoder for vision (sound alone) is not told from others here: no news."""
    if multimodal is False or image_limit == 0 or media.get("language_model_only") is True:
        return False
    return None


def _limit(image: JsonValue) -> int | None:
    """``5`` or ``{"count": 5, ...}``; 0 means that images are not taken at all."""
    count = image.get("count") if isinstance(image, dict) else image
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _max_pixels(processor: dict[str, JsonValue]) -> int | None:
    """The cap in its spellings; ``longest_edge`` is an area for Qwen's processors and a side for others."""
    for place in (processor, inner_object(processor.get("images_kwargs"))):
        edge = whole(inner_object(place.get("size")).get("longest_edge"))
        found = whole(place.get("max_pixels")) or (edge if edge is not None and edge >= _SMALLEST_AREA else None)
        if found is not None:
            return found
    return None


def _chunk(scheduler: dict[str, JsonValue]) -> int | None:
    """Prompt tokens of one step at most, all requests together; a threshold for long prompts may be lower."""
    if scheduler.get("enable_chunked_prefill") is not True:
        return None
    step, long = whole(scheduler.get("max_num_batched_tokens")), whole(scheduler.get("long_prefill_token_threshold"))
    return step if step is None or long is None else min(step, long)


def _label(labels: dict[str, str], name: str) -> int | None:
    value = words(labels.get(name, "")) or ""
    return int(value) if value.isascii() and value.isdigit() else None
