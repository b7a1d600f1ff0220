"""SGLang, read from the sources of 0.5.23; not run here.

``/health`` generates a token and takes a second at least, so it is no probe for every few seconds; ``/ready`` is a
flag (503 while starting or paused), turned by what the last ``/health`` found: somebody must ask that now and then.
``/v1/loads`` is the cheap load report, the metrics need ``--enable-metrics``. ``/server_info`` asks the scheduler, so
nobody is recognised by it.
"""

from __future__ import annotations

from gateway.types import EngineKind
from gateway.upstream.engines import kv_events
from gateway.upstream.engines.contract import ABORTED, MODELS_PATH, REFUSED, Documents, EngineFacts, EngineLoad
from gateway.upstream.engines.reading import (
    JsonValue,
    counted,
    fullest,
    inner_object,
    json_object,
    model_cards,
    total,
    whole,
    words,
)

_SERVER_PATH = "/server_info"
_MODEL_PATH = "/model_info"
_LOADS_PATH = "/v1/loads?include=core"
_METRICS_PATH = "/metrics"
# --max-queued-requests, priorities, SGLANG_REQ_WAITING_TIMEOUT: never left the waiting queue (managers/scheduler.py).
_QUEUE_FULL = (
    b"The request queue is full",
    b"The request is aborted by a higher priority request",
    b"Request waiting timeout reached",
)
_RAN_TOO_LONG = b"running timeout"


class Sglang:
    kind = EngineKind.SGLANG
    refuses_in_streams = True
    identity_paths = (MODELS_PATH, _MODEL_PATH)
    facts_paths = (MODELS_PATH, _SERVER_PATH, _MODEL_PATH)
    health_paths = ("/ready", "/ping", MODELS_PATH)
    load_paths = (_LOADS_PATH, _METRICS_PATH)
    waking_path = "/health"
    reports_load = False

    def recognises(self, documents: Documents) -> bool:
        if any(card.get("owned_by") == "sglang" for card in model_cards(documents.get(MODELS_PATH))):
            return True
        return isinstance(json_object(documents.get(_MODEL_PATH)).get("is_generation"), bool)

    def facts(self, documents: Documents) -> EngineFacts:
        cards = model_cards(documents.get(MODELS_PATH))
        server = json_object(documents.get(_SERVER_PATH))
        model = json_object(documents.get(_MODEL_PATH))
        images = inner_object(server.get("mm_process_config")).get("image")
        lengths = [length for card in cards if (length := whole(card.get("max_model_len"))) is not None]
        vision = model.get("has_image_understanding")
        return EngineFacts(
            version=words(server.get("version")),
            models=tuple(name for card in cards if (name := words(card.get("id"))) is not None),
            model_root=words(model.get("model_path")) or (words(cards[0].get("root")) if cards else None),
            context_tokens=whole(server.get("context_length")) or max(lengths, default=None),
            kv_capacity_tokens=whole(server.get("max_total_num_tokens")),
            kv_block_tokens=whole(server.get("page_size")),
            max_pixels=whole(inner_object(images).get("max_pixels")),
            max_images=whole(inner_object(server.get("limit_mm_data_per_request")).get("image")),
            vision=vision if isinstance(vision, bool) else None,
            prefill_chunk_tokens=whole(server.get("chunked_prefill_size")),  # -1 = not cut
            api_servers=whole(server.get("tokenizer_worker_num")),
            ranks=whole(server.get("dp_size")),
            kv_event_sources=kv_events.of_sglang(server.get("kv_events")) if "kv_events" in server else None,
        )

    def load(self, path: str, document: bytes) -> EngineLoad:
        if path == _LOADS_PATH:
            return _from_loads(json_object(document).get("loads"))
        return EngineLoad(
            running=total(document, "sglang:num_running_reqs"),
            waiting=total(document, "sglang:num_queue_reqs"),
            # full_token_usage: of hybrid models, whose other pools may be what is full
            kv_use_ratio=fullest(document, "sglang:token_usage", "sglang:full_token_usage"),
        )

    def report(self, _header: str) -> EngineLoad | None:
        return None

    def refusal(self, status: int, head: bytes) -> str | None:
        return REFUSED if status == 503 and any(text in head for text in _QUEUE_FULL) else None

    def stream_refusal(self, event: bytes) -> str | None:
        """The scheduler's abort of a request that has not produced anything: an error with code 503, or a bare end.

        One that was stopped because it ran too long may have run, and proves nothing.
        """
        if _RAN_TOO_LONG in event.lower():
            return None
        chunk = json_object(event)
        error = inner_object(chunk.get("error"))
        if error.get("code") == 503:
            return REFUSED
        return ABORTED if not error and _ends_aborted(chunk) else None


def _ends_aborted(chunk: dict[str, JsonValue]) -> bool:
    """Of a chat: the first choice ends and says nothing; of ``/generate``: no token, and a reason of that type."""
    choices = chunk.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        delta = inner_object(choices[0].get("delta"))
        return choices[0].get("finish_reason") == "abort" and not (delta.get("content") or delta.get("tool_calls"))
    reason = inner_object(inner_object(chunk.get("meta_info")).get("finish_reason"))
    return reason.get("type") == "abort" and not (chunk.get("text") or chunk.get("output_ids"))


def _from_loads(loads: JsonValue) -> EngineLoad:
    ranks = [rank for rank in loads if isinstance(rank, dict)] if isinstance(loads, list) else []
    if not ranks:
        return EngineLoad()
    uses = [float(use) for rank in ranks if isinstance(use := rank.get("token_usage"), int | float)]
    tokens = [count for rank in ranks if (count := counted(rank.get("num_waiting_uncached_tokens"))) is not None]
    return EngineLoad(
        running=sum(whole(rank.get("num_running_reqs")) or 0 for rank in ranks),
        waiting=sum(whole(rank.get("num_waiting_reqs")) or 0 for rank in ranks),
        kv_use_ratio=min(1.0, max(0.0, *uses)) if uses else None,
        waiting_tokens=sum(tokens) if tokens else None,
    )
