"""vLLM, read from 0.32.0 as it runs (documents, metrics) and from its sources (queue limits).

``/health`` is cheap but says 200 while draining; a draining server shows itself by the text of its 500.
"""

from __future__ import annotations

from gateway.types import EngineKind
from gateway.upstream.engines.contract import DRAINING, MODELS_PATH, REFUSED, Documents, EngineFacts, EngineLoad
from gateway.upstream.engines.reading import (
    fullest,
    json_object,
    model_cards,
    samples,
    total,
    whole,
    words,
)

_VERSION_PATH = "/version"
_METRICS_PATH = "/metrics"
# --max-num-queued-reqs and --max-num-queued-tokens: refused before anything was scheduled.
_QUEUE_FULL = (
    b"The engine is currently busy and cannot accept new requests",
    b"The engine has reached its prefill token backlog limit",
)
# Every new request after SIGTERM with --shutdown-timeout > 0: the front end's executor is closed.
_SHUTTING_DOWN = b"cannot schedule new futures after shutdown"


class Vllm:
    kind = EngineKind.VLLM
    facts_paths = (MODELS_PATH, _VERSION_PATH, _METRICS_PATH)
    health_paths = ("/health", MODELS_PATH)
    load_paths = (_METRICS_PATH,)

    def recognises(self, documents: Documents) -> bool:
        if any(card.get("owned_by") == "vllm" for card in model_cards(documents.get(MODELS_PATH))):
            return True
        return words(json_object(documents.get(_VERSION_PATH)).get("version")) is not None

    def facts(self, documents: Documents) -> EngineFacts:
        cards = model_cards(documents.get(MODELS_PATH))
        lengths = [length for card in cards if (length := whole(card.get("max_model_len"))) is not None]
        capacity, block = _kv_cache(documents.get(_METRICS_PATH, b""))
        return EngineFacts(
            version=words(json_object(documents.get(_VERSION_PATH)).get("version")),
            models=tuple(name for card in cards if (name := words(card.get("id"))) is not None),
            model_root=words(cards[0].get("root")) if cards else None,
            context_tokens=max(lengths, default=None),
            kv_capacity_tokens=capacity,
            kv_block_tokens=block,
        )

    def load(self, _path: str, document: bytes) -> EngineLoad:
        return EngineLoad(
            running=total(document, "vllm:num_requests_running"),
            waiting=total(document, "vllm:num_requests_waiting"),
            # gpu_cache_usage_perc until 0.10
            kv_use_ratio=fullest(document, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        )

    def refusal(self, status: int, head: bytes) -> str | None:
        if status == 503 and any(text in head for text in _QUEUE_FULL):
            return REFUSED
        if status == 500 and _SHUTTING_DOWN in head:
            return DRAINING
        return None


def _kv_cache(metrics: bytes) -> tuple[int | None, int | None]:
    """Capacity in tokens over all ranks, and the block size, from ``vllm:cache_config_info``.

    Versions without ``kv_cache_size_tokens`` give blocks: capacity = blocks x tokens per block.
    """
    capacity = 0
    block: int | None = None
    for sample in samples(metrics, "vllm:cache_config_info"):
        block = _label(sample.labels, "block_size") or block
        tokens = _label(sample.labels, "kv_cache_size_tokens")
        if tokens is None:
            blocks = _label(sample.labels, "num_gpu_blocks")
            tokens = blocks * block if blocks is not None and block is not None else None
        capacity += tokens or 0
    return capacity or None, block


def _label(labels: dict[str, str], name: str) -> int | None:
    value = labels.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else None
