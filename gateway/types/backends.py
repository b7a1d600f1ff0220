"""A backend as routing sees it, and what one request will ask of it. Not decided here: how either is found out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.types.names import BackendName
from gateway.types.per_request import per_request


class EngineKind(StrEnum):
    VLLM = "vllm"
    SGLANG = "sglang"
    GENERIC = "generic"


class BackendRole(StrEnum):
    """Which part of a request a backend computes; ``full``: all of it.

    ``encoder`` turns pictures into embeddings for ``consumer`` (vLLM's EC producer and consumer); ``prefill`` computes
    a prompt's KV blocks for ``decode``. Clients' requests go to consumers and decoders; the other two are helpers.
    """

    FULL = "full"
    ENCODER = "encoder"
    CONSUMER = "consumer"
    PREFILL = "prefill"
    DECODE = "decode"

    @property
    def helps(self) -> bool:
        """Whether it only ever does a part of a request that goes elsewhere."""
        return self is BackendRole.ENCODER or self is BackendRole.PREFILL


@dataclass(frozen=True, slots=True)
class KvEventSource:
    """Where one data-parallel rank of an engine tells (ZMQ) which KV blocks it holds, and repeats what was missed.

    ``listens``: the engine waits at ``endpoint`` for subscribers; else it connects there itself, to whoever listens.
    """

    rank: int
    endpoint: str
    replay_endpoint: str | None = None
    topic: str = ""
    listens: bool = True


@per_request(frozen=True, slots=True)
class BackendView:
    """One backend as routing sees it at one moment: discovered facts, health and load. Immutable.

    ``None`` = not known. ``queued_prefill_tokens`` are ours, uncached, unanswered. ``returns``: how often it came back.
    ``encoder_tokens``: the most embeddings that one image may have there; ``encoder_cache_tokens``: what its encoder
    cache holds at least. ``prefix_hash``: the algorithm of its prefix cache's block hashes. ``api_servers``: front-end
    processes, each with a multimodal cache of its own (2 may stand for more); ``ranks``: data-parallel ones.
    The two paces are learnt from times to the first token, ``recent_work_tokens`` is what we gave it over some minutes.
    ``scraped_inflight_requests`` were ours when the engine was asked for its load.
    ``engine_waiting_tokens``: uncached prompt tokens that wait in the engine, whoever sent them.
    ``takes_ids``: told whether images that it holds may go as ids alone; ``image_cache_bytes`` of processed pictures.
    ``ramp``: how much of its usual share it may get (0 to 1) after it came back. ``resting``: it asked to be left alone
    for a while (``Retry-After``). ``written_url``: as it was configured, for people (``url`` names no socket's path).
    """

    name: BackendName
    url: str
    engine: EngineKind
    engine_version: str | None = None
    models: tuple[str, ...] = ()
    model_root: str | None = None
    healthy: bool = True
    draining: bool = False
    vision: bool = True
    context_tokens: int | None = None
    kv_capacity_tokens: int | None = None
    kv_block_tokens: int | None = None
    max_pixels: int | None = None
    max_images: int | None = None
    prefix_hash: str | None = None
    encoder_tokens: int | None = None
    encoder_cache_tokens: int | None = None
    prefill_chunk_tokens: int | None = None
    api_servers: int | None = None
    ranks: int | None = None
    kv_event_sources: tuple[KvEventSource, ...] = ()
    prefill_s_per_token: float | None = None
    encode_s_per_patch: float | None = None
    recent_work_tokens: float = 0.0
    inflight_requests: int = 0
    inflight_kv_tokens: int = 0
    queued_prefill_tokens: int = 0
    queued_encode_patches: int = 0
    engine_running: int | None = None
    engine_waiting: int | None = None
    engine_waiting_tokens: int | None = None
    kv_use_ratio: float | None = None
    scraped_age_s: float | None = None
    scraped_inflight_requests: int | None = None
    returns: int = 0
    role: BackendRole = BackendRole.FULL
    takes_ids: bool | None = None
    image_cache_bytes: int | None = None
    bootstrap_port: int = 8998
    max_requests: int | None = None
    max_prefill_tokens: int | None = None
    priorities: bool = False
    ramp: float = 1.0
    resting: bool = False
    written_url: str = ""


@per_request(frozen=True, slots=True)
class RequestCost:
    """What one request will ask of a backend, for its account and for the decision.

    ``cached_tokens`` of the prompt need no prefill there. ``first_token_s``: when its first token is expected, of an
    answer that comes in one piece at its end; ``None`` = the first byte tells.
    """

    prompt_tokens: int
    output_tokens: int
    encode_patches: int
    cached_tokens: int = 0
    first_token_s: float | None = None

    @property
    def kv_tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens that are computed."""
        return max(0, self.prompt_tokens - self.cached_tokens)
