"""vLLM, read from 0.32.0 as it runs (documents, metrics, load reports) and from its sources (queue limits).

``/health`` is cheap but says 200 while draining; a draining server shows itself by the text of its 500. How it was
started is told by ``/server_info`` alone, which exists with VLLM_SERVER_DEV_MODE=1 only; without it those facts stay
unknown unless configured.
"""

from __future__ import annotations

from gateway.types import EngineKind
from gateway.upstream.engines import kv_events
from gateway.upstream.engines.contract import DRAINING, MODELS_PATH, REFUSED, Documents, EngineFacts, EngineLoad
from gateway.upstream.engines.reading import (
    fullest,
    inner_object,
    is_measure,
    json_object,
    model_cards,
    total,
    whole,
    words,
)
from gateway.upstream.engines.vllm_documents import cache_facts, start_facts

_VERSION_PATH = "/version"
_METRICS_PATH = "/metrics"
_EVENTS_PATH = "/kv_event_sources"
_SERVER_PATH = "/server_info?config_format=json"
# --max-num-queued-reqs and --max-num-queued-tokens: refused before anything was scheduled.
_QUEUE_FULL = (
    b"The engine is currently busy and cannot accept new requests",
    b"The engine has reached its prefill token backlog limit",
)
# Every new request after SIGTERM with --shutdown-timeout > 0: the front end's executor is closed.
_SHUTTING_DOWN = b"cannot schedule new futures after shutdown"


class Vllm:
    kind = EngineKind.VLLM
    refuses_in_streams = False
    identity_paths = (MODELS_PATH, _VERSION_PATH)
    facts_paths = (MODELS_PATH, _VERSION_PATH, _METRICS_PATH, _EVENTS_PATH, _SERVER_PATH)
    health_paths = ("/health", MODELS_PATH)
    load_paths = (_METRICS_PATH,)
    waking_path: str | None = None
    reports_load = True

    def recognises(self, documents: Documents) -> bool:
        if any(card.get("owned_by") == "vllm" for card in model_cards(documents.get(MODELS_PATH))):
            return True
        return words(json_object(documents.get(_VERSION_PATH)).get("version")) is not None

    def facts(self, documents: Documents) -> EngineFacts:
        cards = model_cards(documents.get(MODELS_PATH))
        lengths = [length for card in cards if (length := whole(card.get("max_model_len"))) is not None]
        metrics, events = documents.get(_METRICS_PATH, b""), documents.get(_EVENTS_PATH)
        cache = cache_facts(metrics)
        start = start_facts(json_object(documents.get(_SERVER_PATH)))
        return EngineFacts(
            version=words(json_object(documents.get(_VERSION_PATH)).get("version")),
            models=tuple(name for card in cards if (name := words(card.get("id"))) is not None),
            model_root=words(cards[0].get("root")) if cards else None,
            context_tokens=max(lengths, default=None),
            kv_capacity_tokens=cache.capacity_tokens,
            kv_block_tokens=cache.block_tokens,
            max_pixels=start.max_pixels,
            max_images=start.max_images,
            vision=start.vision,
            prefix_hash=cache.prefix_hash,
            encoder_cache_tokens=start.encoder_cache_tokens,
            prefill_chunk_tokens=start.prefill_chunk_tokens,
            api_servers=start.api_servers or cache.api_servers,
            ranks=cache.ranks,
            kv_event_sources=None if events is None else kv_events.of_vllm(json_object(events)),
        )

    def load(self, _path: str, document: bytes) -> EngineLoad:
        return EngineLoad(
            running=total(document, "vllm:num_requests_running"),
            waiting=total(document, "vllm:num_requests_waiting"),
            # gpu_cache_usage_perc until 0.10
            kv_use_ratio=fullest(document, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        )

    def report(self, header: str) -> EngineLoad | None:
        """``JSON {"named_metrics": {...}}``, as ``orca_metrics.py`` writes it: waiting requests and KV use."""
        kind, _, text = header.partition(" ")
        named = inner_object(json_object(text.encode("utf-8", "replace")).get("named_metrics"))
        waiting, use = named.get("num_requests_waiting"), named.get("kv_cache_usage_perc")
        if kind != "JSON" or not is_measure(waiting) or not is_measure(use):
            return None
        return EngineLoad(waiting=round(waiting), kv_use_ratio=min(1.0, use))

    def refusal(self, status: int, head: bytes) -> str | None:
        if status == 503 and any(text in head for text in _QUEUE_FULL):
            return REFUSED
        if status == 500 and _SHUTTING_DOWN in head:
            return DRAINING
        return None

    def stream_refusal(self, _event: bytes) -> str | None:
        return None
